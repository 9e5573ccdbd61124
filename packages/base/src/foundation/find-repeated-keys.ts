import { visit } from "jsonc-parser";
import type { DocumentPath } from "./diagnostic.ts";
import { withoutByteOrderMark } from "./parse-json-document.ts";

/**
 * The keys that are written twice in one object of a JSON text, each with its path: of those the last one counts for a program,
 * while a person may have read the first. Undefined for a text that is nested too deeply to be looked through.
 */
export function findRepeatedKeys(source: string): readonly DocumentPath[] | undefined {
  const found: DocumentPath[] = [];
  const open: Set<string>[] = [];
  try {
    visit(withoutByteOrderMark(source), {
      onObjectBegin: () => {
        open.push(new Set());
      },
      onObjectProperty(key, _offset, _length, _line, _character, pathOf) {
        const keys = open.at(-1);
        if (keys?.has(key) === true) found.push([...pathOf(), key]);
        keys?.add(key);
      },
      onObjectEnd: () => {
        open.pop();
      },
    });
  } catch {
    return undefined;
  }
  return found;
}

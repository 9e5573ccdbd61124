import { isDeepStrictEqual } from "node:util";
import { applyEdits, modify } from "jsonc-parser";
import { byteOrderMark, withoutByteOrderMark } from "../foundation/byte-order-mark.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { parseJsonDocument } from "../foundation/json-document.ts";
import { isRecord } from "../foundation/json-record.ts";

/** Sets the value at a path of keys, or removes it where the value is undefined. */
export interface JsonChange {
  readonly path: readonly string[];
  readonly value: unknown;
}

export type JsonEdit =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "broken"; readonly why: string; readonly diagnostic?: Diagnostic };

/** The text with some values changed and all else as it was written; a file that cannot be understood is left alone. */
export function editJson(text: string | undefined, changes: readonly JsonChange[], file: string): JsonEdit {
  const before = text === undefined || text.trim() === "" ? "{}\n" : withoutByteOrderMark(text);
  const document = parseJsonDocument(before, file);
  if (document.diagnostic !== undefined)
    return { type: "broken", why: `${file} is broken and was not touched`, diagnostic: document.diagnostic };
  const blocked = changes.find(({ path }) => !isReachable(document.value, path));
  if (blocked !== undefined)
    return {
      type: "broken",
      why: `${file} holds something else at "${blocked.path.join(".")}"; it was not touched`,
    };
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: before.includes("\r\n") ? "\r\n" : "\n" };
  const after = changes
    .filter(({ path, value }) => !isDeepStrictEqual(valueAt(document.value, path), value))
    .reduce(
      (current, { path, value }) =>
        applyEdits(current, modify(current, [...path], value, { formattingOptions })),
      before,
    );
  // With a key written twice, the edit lands in the one that does not count.
  const result = parseJsonDocument(after, file).value;
  if (!changes.every(({ path, value }) => isDeepStrictEqual(valueAt(result, path), value)))
    return { type: "broken", why: `a key appears twice in ${file}; it was not touched` };
  return { type: "text", text: text?.startsWith(byteOrderMark) === true ? byteOrderMark + after : after };
}

/** The value under own keys; undefined where the way ends. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    value,
  );
}

function isReachable(value: unknown, path: readonly string[]): boolean {
  return path.every((_, depth) => {
    const at = valueAt(value, path.slice(0, depth));
    return (at === undefined && depth > 0) || isRecord(at);
  });
}

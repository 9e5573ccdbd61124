import type { Place } from "../foundation/diagnostic.ts";

/** Where an entry of a list stands in the text, from the place of the list's key on; undefined when it is spelt otherwise there. */
export function placeOfEntry(text: string, key: Place, entry: string): Place | undefined {
  if (entry === "") return undefined;
  const lines = text.split("\n");
  for (let index = key.line - 1; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const isFirst = index === key.line - 1;
    if (!isFirst && endsField(line, key.column)) return undefined;
    const at = findWhole(line, entry, isFirst ? key.column - 1 + (key.length ?? 0) : 0);
    if (at !== -1) return { line: index + 1, column: at + 1, length: entry.length };
  }
  return undefined;
}

/** A list goes on while lines are indented deeper than its key, or begin with a dash. */
function endsField(line: string, keyColumn: number): boolean {
  const indent = line.search(/\S/);
  if (indent === -1) return false;
  return indent < keyColumn && !/^\s*-(?:\s|$)/.test(line) && !/^\s*[\]#]/.test(line);
}

/** `Edit` must not be found inside `NotebookEdit`. */
function findWhole(line: string, entry: string, from: number): number {
  for (let at = line.indexOf(entry, from); at !== -1; at = line.indexOf(entry, at + 1)) {
    const before = line[at - 1] ?? " ";
    const after = line[at + entry.length] ?? " ";
    if (!/[\w(]/.test(before) && !/[\w(]/.test(after)) return at;
  }
  return -1;
}

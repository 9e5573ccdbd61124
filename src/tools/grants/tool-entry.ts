/** One entry of `tools` or `disallowedTools`: a tool, perhaps narrowed to some of its calls. */
export type ToolEntry =
  | { readonly type: "whole"; readonly name: string }
  | { readonly type: "scoped"; readonly name: string; readonly specifier: string }
  | { readonly type: "malformed"; readonly name: string };

export function parseToolEntry(text: string): ToolEntry {
  const entry = text.trim();
  const open = entry.indexOf("(");
  if (open === -1) {
    const name = nameBefore(entry, [")", ":*"]);
    return { type: name === "" || name !== entry ? "malformed" : "whole", name };
  }
  const name = entry.slice(0, open).trim();
  if (name === "" || !entry.endsWith(")")) return { type: "malformed", name };
  const specifier = entry.slice(open + 1, -1).trim();
  return coversEverything(specifier) ? { type: "whole", name } : { type: "scoped", name, specifier };
}

/** `Bash)` and `Bash:*` name no calls that can be reported, but they do name a tool. */
function nameBefore(entry: string, marks: readonly string[]): string {
  const ends = marks.map((mark) => entry.indexOf(mark)).filter((index) => index !== -1);
  return entry.slice(0, Math.min(entry.length, ...ends)).trim();
}

function coversEverything(specifier: string): boolean {
  return specifier === "" || specifier === "*" || specifier === ":*";
}

import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { absentToolNames, toolAliases } from "@retinue/base/foundation/tool-table.ts";
import { builtinTools } from "./builtin-tools.ts";

/** One entry of `tools` or `disallowedTools`: a tool, perhaps narrowed to some of its calls. */
export type ToolEntry =
  | { readonly type: "whole"; readonly name: string }
  | { readonly type: "scoped"; readonly name: string; readonly specifier: string }
  | { readonly type: "malformed"; readonly name: string };

export function parseToolEntry(text: string): ToolEntry {
  const entry = text.trim();
  const open = entry.indexOf("(");
  if (open === -1) {
    // `Bash)` and `Bash:*` name no calls that can be reported, but they do name a tool.
    const marks = [")", ":*"];
    const ends = marks.map((mark) => entry.indexOf(mark)).filter((index) => index !== -1);
    const name = entry.slice(0, Math.min(entry.length, ...ends)).trim();
    return { type: name === "" || name !== entry ? "malformed" : "whole", name };
  }
  const name = entry.slice(0, open).trim();
  if (name === "" || !entry.endsWith(")")) return { type: "malformed", name };
  const specifier = entry.slice(open + 1, -1).trim();
  return specifier === "" || specifier === "*" || specifier === ":*"
    ? { type: "whole", name }
    : { type: "scoped", name, specifier };
}

/** The entries of a list, each with what the name in it means. */
export function parseToolEntries(
  texts: readonly string[],
): readonly { readonly entry: ToolEntry; readonly meaning: ToolNameMeaning }[] {
  return texts.map((text) => {
    const entry = parseToolEntry(text);
    return { entry, meaning: resolveToolName(entry.name) };
  });
}

/**
 * The entries of a list that was written as one text. Commas, semicolons, bars and line breaks separate, except inside
 * parentheses or quotes; a text without either is split at spaces when every piece looks like a tool name.
 */
export function splitEntries(text: string): string[] {
  const source = unwrapList(text);
  const pieces = cleanEntries(splitOutside(source, /[,;|\uff0c\u3001\uff1b\r\n]/));
  if (pieces.length !== 1) return pieces;
  const words = cleanEntries(splitOutside(source, /\s/));
  return words.length > 1 &&
    words.every((entry) => {
      const name = /^([^\s()]+)(?:\(.*\))?$/s.exec(entry)?.[1];
      if (name === undefined) return false;
      return /^(?:[A-Z][A-Za-z0-9]*|\*|mcp__.*)$/s.test(name) || resolveToolName(name).type !== "unknown";
    })
    ? words
    : pieces;
}

/** The words of a text, with what is in parentheses or quotes kept together. */
export function splitWords(text: string): string[] {
  return cleanEntries(splitOutside(text, /\s/));
}

/** Joins pieces that a YAML flow list tore apart inside parentheses: `["Bash(a", "b)"]` is one entry, `Bash(a, b)`. */
export function rejoinEntries(list: readonly string[]): string[] {
  const depths = parenthesisDepths(list.join("\n"));
  const entries: string[] = [];
  let pending: string[] = [];
  let end = -1;
  for (const piece of list) {
    end += piece.length;
    pending.push(piece.trim());
    const isOpen = (depths[end] ?? 0) > 0;
    end += 1;
    if (isOpen) continue;
    entries.push(pending.join(", "));
    pending = [];
  }
  return cleanEntries([...entries, ...pending]);
}

/** A whole text in brackets or quotes is a quoted list; the list is what counts. */
function unwrapList(text: string): string {
  const trimmed = text.trim();
  const first = trimmed[0];
  const last = trimmed.at(-1);
  if (trimmed.length < 2 || first === undefined) return trimmed;
  if (first === "[" && last === "]") return trimmed.slice(1, -1);
  const isOneQuote = quotes.has(first) && trimmed.indexOf(first, 1) === trimmed.length - 1;
  return isOneQuote ? trimmed.slice(1, -1) : trimmed;
}

function splitOutside(text: string, separator: RegExp): string[] {
  const depths = parenthesisDepths(text);
  const pieces: string[] = [];
  let start = 0;
  let isEntryStart = true;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (isEntryStart && quotes.has(character)) index = endOfQuote(text, index, separator) ?? index;
    else if ((depths[index] ?? 0) === 0 && separator.test(character)) {
      pieces.push(text.slice(start, index));
      start = index + 1;
    }
    isEntryStart = start === index + 1 || (isEntryStart && /\s/.test(character));
  }
  pieces.push(text.slice(start));
  return pieces;
}

/** Where the quote that opens an entry closes, if the entry ends there; an apostrophe elsewhere is only a letter. */
function endOfQuote(text: string, open: number, separator: RegExp): number | undefined {
  const close = text.indexOf(text[open] ?? "", open + 1);
  if (close === -1) return undefined;
  const next = text[close + 1];
  return next === undefined || /\s/.test(next) || separator.test(next) ? close : undefined;
}

/** For each character how many parentheses are open after it; one that never closes does not count. */
function parenthesisDepths(text: string): Int32Array {
  const depths = new Int32Array(text.length);
  const open: number[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === "\\") index += 1;
    else if (character === "(") open.push(index);
    else if (character === ")") {
      const partner = open.pop();
      if (partner === undefined) continue;
      depths[partner] = 1;
      depths[index] = -1;
    }
  }
  let depth = 0;
  for (let index = 0; index < depths.length; index += 1) {
    depth += depths[index] ?? 0;
    depths[index] = depth;
  }
  return depths;
}

function cleanEntries(pieces: readonly string[]): string[] {
  // Takes off what belongs to the notation of a list and not to the entry: quotes, brackets, list dashes.
  return pieces
    .map((piece) => {
      let start = 0;
      let end = piece.length;
      while (start < end && isLeadingNotation(piece, start)) start += 1;
      const closesBracket = piece.indexOf("[", start) !== -1;
      while (end > start && isTrailingNotation(piece, end - 1, closesBracket)) end -= 1;
      return piece.slice(start, end);
    })
    .filter((entry) => entry !== "");
}

function isLeadingNotation(piece: string, index: number): boolean {
  const character = piece[index] ?? "";
  if (character === "-") return /^[\s-]?$/.test(piece[index + 1] ?? "");
  return character === "[" || quotes.has(character) || /\s/.test(character);
}

function isTrailingNotation(piece: string, index: number, closesBracket: boolean): boolean {
  const character = piece[index] ?? "";
  if (character === "-") return index === 0 || /[\s-]/.test(piece[index - 1] ?? "");
  return (character === "]" && !closesBracket) || quotes.has(character) || /\s/.test(character);
}

const quotes: ReadonlySet<string> = new Set(['"', "'", "`"]);

/** What the name of a tool in a file means here. */
export type ToolNameMeaning =
  | { readonly type: "known"; readonly name: string }
  | { readonly type: "renamed"; readonly name: string; readonly reason: "old-name" | "letter-case" }
  /** Known elsewhere, but this product has no such tool. */
  | { readonly type: "absent" }
  /** Without a server: every server. Without a tool: every tool of the server. */
  | { readonly type: "mcp"; readonly server?: string; readonly tool?: string }
  | { readonly type: "unknown"; readonly nearest?: string };

export function resolveToolName(name: string): ToolNameMeaning {
  if (builtinNames.has(name)) return { type: "known", name };
  if (name.startsWith("mcp__")) {
    // A server's name ends at the first double underscore, as it does when the tool names are made.
    const rest = name.slice("mcp__".length);
    const end = rest.indexOf("__");
    const server = end === -1 ? rest : rest.slice(0, end);
    const tool = end === -1 ? "" : rest.slice(end + 2);
    if (server === "") return { type: "unknown" };
    return {
      type: "mcp",
      ...(server === "*" ? {} : { server }),
      ...(tool === "" || tool === "*" ? {} : { tool }),
    };
  }
  const today = toolAliases.get(name);
  if (today !== undefined) return fromOldName(today);
  if (absentToolNames.has(name)) return { type: "absent" };
  return resolveLetterCase(name);
}

/** Every name a person could have meant, for suggestions. */
export function knownToolNames(): readonly string[] {
  return [...builtinNames];
}

function resolveLetterCase(name: string): ToolNameMeaning {
  const lower = name.toLowerCase();
  const known = byLowerCase.get(lower);
  if (known !== undefined) return { type: "renamed", name: known, reason: "letter-case" };
  const today = renamedByLowerCase.get(lower);
  if (today !== undefined) return fromOldName(today);
  const nearest = nearestName(name, builtinNames);
  return { type: "unknown", nearest };
}

/** Some tools were renamed that this product does not have under any name. */
function fromOldName(today: string): ToolNameMeaning {
  return builtinNames.has(today) ? { type: "renamed", name: today, reason: "old-name" } : { type: "absent" };
}

const builtinNames: ReadonlySet<string> = new Set(builtinTools.map((tool) => tool.name));
const byLowerCase: ReadonlyMap<string, string> = new Map(
  builtinTools.map((tool) => [tool.name.toLowerCase(), tool.name]),
);
const renamedByLowerCase: ReadonlyMap<string, string> = new Map(
  [...toolAliases].map(([old, today]) => [old.toLowerCase(), today]),
);

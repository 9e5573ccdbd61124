import { load } from "js-yaml";
import { agentVocabulary, type FrontmatterEntry, type KeyVocabulary } from "./definition-keys.ts";

/** What one entry says, read on its own. */
export type RepairedValue =
  | { readonly type: "clean"; readonly value: unknown }
  | { readonly type: "repaired"; readonly value: unknown; readonly reason: string; readonly advice: string }
  | { readonly type: "unreadable"; readonly reason: string };

/** Reads an entry as YAML, then with its indentation fixed, then as the plain text or list it evidently is. */
export function repairEntry(
  entry: FrontmatterEntry,
  vocabulary: KeyVocabulary = agentVocabulary,
): RepairedValue {
  const lines = [`${entry.key}: ${entry.head}`, ...entry.below];
  const clean = loadEntry(lines.join("\n"));
  if (clean !== undefined) return { type: "clean", value: clean.value };
  if (lines.some((line) => /^[ \t]*\t/.test(line))) {
    const expanded = loadEntry(lines.map(expandTabs).join("\n"));
    if (expanded !== undefined) {
      const reason = "tabs are not allowed as YAML indentation; they were read as two spaces each.";
      return { type: "repaired", value: expanded.value, reason, advice: "Indent with spaces." };
    }
  }
  const closed = asEnclosed(entry) ?? withIndentedEnds(lines);
  if (closed !== undefined) return closed;
  if (isProse(entry.key, vocabulary)) return asText(entry, vocabulary);
  return withoutStrayLines(entry) ?? asList(entry) ?? asText(entry, vocabulary);
}

function isProse(key: string, vocabulary: KeyVocabulary): boolean {
  const meaning = vocabulary.meaningOf(key);
  return meaning.type === "unknown" || vocabulary.prose.has(meaning.key);
}

/** A bracket that closes a list at the margin of its key ends nothing else, although YAML wants it further in. */
function withIndentedEnds(lines: readonly string[]): RepairedValue | undefined {
  const [first = "", ...below] = lines;
  if (!below.some((line) => closingBracket.test(line))) return undefined;
  const moved = below.map((line) => (closingBracket.test(line) ? `  ${line}` : line));
  const reading = loadEntry([first, ...moved].join("\n"));
  if (reading === undefined) return undefined;
  const reason = "a list is closed at the margin of its key; the bracket was read as its end.";
  return { type: "repaired", value: reading.value, reason, advice: "Indent the bracket by two spaces." };
}

const closingBracket = /^ *[\]}][\]}, ]*(?:#.*)?$/;

/** Brackets and quotes show where a value ends, also when its last lines are at the left margin. */
function asEnclosed({ key, head, below }: FrontmatterEntry): RepairedValue | undefined {
  if (!/^["'[{]/.test(head)) return undefined;
  const reading = loadEntry([`${key}: ${head}`, ...below.map((line) => `  ${expandTabs(line)}`)].join("\n"));
  if (reading === undefined) return undefined;
  const reason = "the value continues in lines that are not indented; they were taken as part of it.";
  return { type: "repaired", value: reading.value, reason, advice: "Indent them by two spaces." };
}

/** Text at the left margin below a one-word field belongs to nothing, unless a comma says that a list continues. */
function withoutStrayLines(entry: FrontmatterEntry): RepairedValue | undefined {
  if (entry.head.endsWith(",")) return undefined;
  const own = entry.below.filter((line) => /^(?:\s|- |#|$)/.test(line));
  if (own.length === entry.below.length) return undefined;
  const reading = loadEntry([`${entry.key}: ${entry.head}`, ...own].join("\n"));
  if (reading === undefined) return undefined;
  const reason = "text that belongs to no key is below it; that text was ignored.";
  return {
    type: "repaired",
    value: reading.value,
    reason,
    advice: "Remove the text, or indent it below the key it belongs to.",
  };
}

function loadEntry(source: string): { readonly value: unknown } | undefined {
  try {
    const mapping = load(source, { maxAliases: 0 });
    if (typeof mapping !== "object" || mapping === null) return undefined;
    const values = Object.values(mapping);
    return values.length === 1 ? { value: values[0] } : undefined;
  } catch {
    return undefined;
  }
}

function expandTabs(line: string): string {
  return line.replace(/^[ \t]+/, (spaces) => spaces.replaceAll("\t", "  "));
}

/** `- one` lines whose indentation went wrong. */
function asList(entry: FrontmatterEntry): RepairedValue | undefined {
  const lines = entry.below.filter((line) => line.trim() !== "" && !line.trimStart().startsWith("#"));
  if (entry.head !== "" || lines.length === 0 || !lines.every((line) => /^\s*-\s+\S/.test(line)))
    return undefined;
  const value = lines.map((line) => unquote(withoutComment(line.replace(/^\s*-\s+/, "").trim())));
  const reason = "the list is not valid YAML; its lines were read as they are.";
  return {
    type: "repaired",
    value,
    reason,
    advice: "Indent every `- entry` by the same number of spaces and quote entries with special characters.",
  };
}

/** A parenthesis that closes after the hash means that the hash is part of the entry. */
function withoutComment(text: string): string {
  const at = text.search(/\s#/);
  return at === -1 || text.includes(")", at) ? text : text.slice(0, at).trimEnd();
}

function asText(entry: FrontmatterEntry, vocabulary: KeyVocabulary): RepairedValue {
  const isBlockScalar = /^[|>][-+0-9]*$/.test(entry.head);
  // What follows the text at the left margin behind a hash is a comment on the next key.
  const last = entry.below.findLastIndex((line) => line.trim() !== "" && !line.startsWith("#"));
  const below = entry.below.slice(0, last + 1).map((line) => line.trim());
  const parts = [isBlockScalar ? "" : entry.head, ...below];
  const text = unquote(parts.join("\n").trim());
  if (isStructure(entry, vocabulary)) {
    return { type: "unreadable", reason: "it holds nested keys that are not valid YAML" };
  }
  return { type: "repaired", value: text, ...explain(entry, text) };
}

/** Nested `key:` lines under an empty head are structure, and structure is never guessed from text. */
function isStructure(entry: FrontmatterEntry, vocabulary: KeyVocabulary): boolean {
  if (isProse(entry.key, vocabulary)) return false;
  const meaning = vocabulary.meaningOf(entry.key);
  if (meaning.type !== "unknown" && vocabulary.structured.has(meaning.key)) return true;
  if (entry.head !== "") return entry.head.startsWith("{") || isOpenList([entry.head, ...entry.below]);
  return entry.below.some((line) => /^\s+(?:- )?["']?[\w.-]+["']?:(?:\s|$)/.test(line));
}

/** `[Beta] Handles refunds` is text; `["Read", "Grep"` is a list that was never closed. */
function isOpenList(lines: readonly string[]): boolean {
  return lines[0]?.startsWith("[") === true && !lines.some((line) => line.includes("]"));
}

function explain(entry: FrontmatterEntry, text: string): { reason: string; advice: string } {
  const first = entry.head[0] ?? "";
  const quoted = "Put the value in double quotes, or write `>-` after the colon and indent the text below.";
  if (/^[[{*&!@`%|>]/.test(first)) {
    return {
      reason: `a value that starts with \`${first}\` means something else in YAML; it was read as plain text.`,
      advice: quoted,
    };
  }
  if (first === '"' || first === "'") {
    return {
      reason: "the quotes do not enclose the whole value; it was read as plain text.",
      advice: `Use one pair of quotes around everything and write \\${first} inside.`,
    };
  }
  if (entry.below.some((line) => line !== "" && !/^\s/.test(line))) {
    return {
      reason: "the text continues in lines that are not indented; they were taken as part of it.",
      advice: "Write `|` after the colon and indent every line of the text by two spaces.",
    };
  }
  if (/:(?:\s|$)/.test(text)) {
    return { reason: "an unquoted value may not hold `: `; it was read as plain text.", advice: quoted };
  }
  return { reason: "the value is not valid YAML; it was read as plain text.", advice: quoted };
}

/** Takes off one pair of quotes around the whole text, or the one quote that was opened and never closed. */
function unquote(text: string): string {
  const quote = text[0];
  if (text.length < 2 || (quote !== '"' && quote !== "'")) return text;
  if (!text.includes(quote, 1)) return text.slice(1);
  if (!text.endsWith(quote) || closesEarly(text, quote)) return text;
  const inner = text.slice(1, -1);
  return quote === '"' ? inner.replaceAll('\\"', '"') : inner.replaceAll("''", "'");
}

/** In `"a" or "b"` the first quote closes before the text ends, so the outer two are no pair. */
function closesEarly(text: string, quote: string): boolean {
  const next = text.indexOf(quote, 1);
  return next < text.length - 1 && /[^\s\\]/.test(text[next - 1] ?? "") && /\s/.test(text[next + 1] ?? "");
}

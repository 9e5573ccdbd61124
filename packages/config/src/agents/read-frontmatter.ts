import type { Diagnostic, Issue, Locate, Place } from "@retinue/base/foundation/diagnostic.ts";
import { withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import { CORE_SCHEMA, load, mergeTag, YAMLException } from "js-yaml";
import { locateBelow } from "./locate-below.ts";
import { readPlainFrontmatter } from "./read-plain-frontmatter.ts";

/** One field as written; `unreadable` when even the repair step could not determine what it says. */
export interface FrontmatterField {
  readonly key: string;
  readonly value: unknown;
  readonly place: Place;
  /** The text behind the key as it is, for fields that turn out to be prose. */
  readonly text: string;
  readonly unreadable?: string;
}

export interface Frontmatter {
  readonly type: "none" | "unclosed" | "too-large" | "read";
  /** By key as written, in file order; the last of several equal keys wins and `repeated` keeps the earlier ones. */
  readonly fields: ReadonlyMap<string, FrontmatterField>;
  readonly repeated: readonly FrontmatterField[];
  readonly body: string;
  readonly diagnostics: readonly Omit<Diagnostic, "file">[];
  readonly locate: Locate;
}

/** What a reader of frontmatter must know of a kind of file: its keys, and which of them hold prose, limits or structure. */
export interface KeyVocabulary {
  readonly meaningOf: (
    written: string,
  ) => { readonly type: "known" | "misspelt"; readonly key: string } | { readonly type: "unknown" };
  readonly prose: ReadonlySet<string>;
  readonly restricting: ReadonlySet<string>;
  /** Fields of nested keys, which are never guessed from text. */
  readonly structured: ReadonlySet<string>;
}

/** No person writes a frontmatter this long; beyond it, reading would only serve an attack. */
const largestFrontmatter = 256 * 1024;
const fewAliases = 20;
/** With `<<`: a limit that comes from there would be lost otherwise. */
const schema = CORE_SCHEMA.withTags(mergeTag);
/** A person fixes the first problems first; looking up the place of each of thousands would take long. */
const maxSearches = 100;

/** Reads a file's frontmatter: strict YAML first, and where that fails entry by entry. Never throws. */
export function readFrontmatter(text: string, vocabulary: KeyVocabulary): Frontmatter {
  const block = splitFrontmatter(text);
  if (block.type === "none") return emptyFrontmatter("none");
  if (block.type === "unclosed")
    return emptyFrontmatter("unclosed", { line: block.line, column: 1, length: 3 });
  const source = block.lines.join("\n");
  if (source.length > largestFrontmatter) {
    return emptyFrontmatter("too-large", { line: block.firstLine, column: 1 });
  }
  const { entries } = splitEntriesByKey(block.lines, vocabulary);
  const plain = readPlainFrontmatter(block.lines);
  const strict: StrictReading =
    plain === undefined ? loadStrictly(source) : { type: "mapping", value: plain };
  return strict.type === "mapping"
    ? fromStrictYaml(strict.value, entries, block)
    : fromRepairedEntries(entries, block, strict, vocabulary);
}

type StrictReading =
  | { readonly type: "mapping"; readonly value: Readonly<Record<string, unknown>> }
  | { readonly type: "other" }
  | { readonly type: "failed"; readonly reason: string; readonly line: number; readonly column: number };

function loadStrictly(source: string): StrictReading {
  if (source.trim() === "") return { type: "mapping", value: {} };
  try {
    const value = load(source, { schema, maxAliases: fewAliases });
    return isMapping(value) ? { type: "mapping", value } : { type: "other" };
  } catch (error) {
    const mark = error instanceof YAMLException ? error.mark : undefined;
    const reason = error instanceof YAMLException ? error.reason : String(error);
    return { type: "failed", reason, line: mark?.line ?? 0, column: mark?.column ?? 0 };
  }
}

type Block = Extract<FrontmatterBlock, { type: "block" }>;

function fromStrictYaml(
  value: Readonly<Record<string, unknown>>,
  entries: readonly FrontmatterEntry[],
  block: Block,
): Frontmatter {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  const fields = new Map<string, FrontmatterField>();
  for (const [key, fieldValue] of Object.entries(value)) {
    const entry = byKey.get(key);
    const place = entry
      ? placeOfEntry(entry, block.firstLine, block.indent)
      : { line: block.firstLine, column: 1 };
    fields.set(key, { key, value: fieldValue, place, text: entry ? textOfEntry(entry) : "" });
  }
  return finish(fields, [], entries, block, hashDiagnostics(fields, block));
}

function fromRepairedEntries(
  entries: readonly FrontmatterEntry[],
  block: Block,
  strict: Exclude<StrictReading, { type: "mapping" }>,
  vocabulary: KeyVocabulary,
): Frontmatter {
  const fields = new Map<string, FrontmatterField>();
  const repeated: FrontmatterField[] = [];
  const diagnostics: Omit<Diagnostic, "file">[] = [];
  for (const entry of entries) {
    const place = placeOfEntry(entry, block.firstLine, block.indent);
    const reading = repairEntry(entry, vocabulary);
    const earlier = fields.get(entry.key);
    if (earlier !== undefined) {
      repeated.push(earlier);
      diagnostics.push(repeatedKeyDiagnostic(entry, place, earlier.place.line));
    }
    if (reading.type === "repaired") diagnostics.push(repairDiagnostic(entry, reading, place, block, strict));
    fields.set(entry.key, {
      key: entry.key,
      value: reading.type === "unreadable" ? undefined : reading.value,
      place,
      text: textOfEntry(entry),
      ...(reading.type === "unreadable" ? { unreadable: reading.reason } : {}),
    });
  }
  diagnostics.push(...hashDiagnostics(fields, block));
  if (diagnostics.length === 0 && strict.type === "failed") {
    const place = {
      line: block.firstLine + Math.min(strict.line, block.lines.length),
      column: strict.column + 1,
    };
    const message = `The frontmatter is not valid YAML (${strict.reason}); it was read line by line.`;
    diagnostics.push({ severity: "warning", code: "yaml-repaired", message, ...place });
  }
  return finish(fields, repeated, entries, block, diagnostics);
}

function repairDiagnostic(
  entry: FrontmatterEntry,
  reading: Extract<RepairedValue, { type: "repaired" }>,
  place: Place,
  block: Block,
  strict: Exclude<StrictReading, { type: "mapping" }>,
): Omit<Diagnostic, "file"> {
  const brokeHere =
    strict.type === "failed" && strict.line >= entry.index && strict.line <= entry.index + entry.below.length;
  const exact = brokeHere
    ? { line: block.firstLine + strict.line, column: block.indent + strict.column + 1 }
    : place;
  return {
    severity: "warning",
    code: "yaml-repaired",
    message: `\`${entry.key}\`: ${reading.reason}`,
    advice: reading.advice,
    ...exact,
  };
}

function repeatedKeyDiagnostic(
  entry: FrontmatterEntry,
  place: Place,
  earlierLine: number,
): Omit<Diagnostic, "file"> {
  return {
    severity: "warning",
    code: "duplicate-key",
    message: `\`${entry.key}\` appears here a second time (first on line ${earlierLine}).`,
    advice: "Keep one of the two.",
    ...place,
  };
}

/** A ` #` in an unquoted value starts a YAML comment, which surprises people who meant "issue #12". */
function hashDiagnostics(
  fields: ReadonlyMap<string, FrontmatterField>,
  block: Block,
): Omit<Diagnostic, "file">[] {
  const field = fields.get("description");
  if (field === undefined || typeof field.value !== "string") return [];
  const line = block.lines[field.place.line - block.firstLine] ?? "";
  const plain = /^description[ \t]*:[ \t]*[^"'|>\s[{&*!]/.test(line);
  const hash = line.search(/[ \t]#/);
  if (!plain || hash === -1 || field.value.includes(line.slice(hash + 1).trim())) return [];
  return [
    {
      severity: "warning",
      code: "hash-in-plain-text",
      message: "The text after ` #` is a YAML comment and is not part of the description.",
      advice: "Put the description in double quotes.",
      line: field.place.line,
      column: hash + 2 + block.indent,
      length: 1,
    },
  ];
}

function finish(
  fields: ReadonlyMap<string, FrontmatterField>,
  repeated: readonly FrontmatterField[],
  entries: readonly FrontmatterEntry[],
  block: Block,
  diagnostics: readonly Omit<Diagnostic, "file">[],
): Frontmatter {
  const layout = block.issues.map(({ line, ...issue }) => ({ ...issue, line, column: 1 }));
  const locate = createLocate(fields, entries, block);
  return {
    type: "read",
    fields,
    repeated,
    body: block.body,
    diagnostics: [...layout, ...diagnostics],
    locate,
  };
}

/** Goes from a path such as ["hooks", "Stop", 0] to the line of the deepest key that can be found below the field. */
function createLocate(
  fields: ReadonlyMap<string, FrontmatterField>,
  entries: readonly FrontmatterEntry[],
  block: Block,
): Locate {
  let searches = 0;
  return ([first, ...deeper]) => {
    const field = fields.get(String(first));
    if (field === undefined) return { line: Math.max(1, block.firstLine - 1), column: 1, length: 3 };
    const entry = entries.findLast((candidate) => candidate.key === field.key);
    if (entry === undefined || deeper.length === 0 || searches >= maxSearches) return field.place;
    searches += 1;
    const below = locateBelow(entry.below, deeper);
    if (below === undefined) return field.place;
    return {
      line: block.firstLine + entry.index + 1 + below.line,
      column: below.column + 1 + block.indent,
      length: below.length,
    };
  };
}

function textOfEntry(entry: FrontmatterEntry): string {
  if (entry.below.length === 0) return entry.head;
  return [entry.head, ...entry.below.map((line) => line.trim())].join("\n").trim();
}

function emptyFrontmatter(type: "none" | "unclosed" | "too-large", place?: Place): Frontmatter {
  return {
    type,
    fields: new Map(),
    repeated: [],
    body: "",
    diagnostics: [],
    locate: () => place ?? { line: 1, column: 1 },
  };
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A file cut into the lines between its fences and the text after them. Line numbers count from 1 in the original file. */
type FrontmatterBlock =
  | { readonly type: "none" }
  | { readonly type: "unclosed"; readonly line: number }
  | {
      readonly type: "block";
      readonly lines: readonly string[];
      /** Line number of the first line between the fences. */
      readonly firstLine: number;
      /** How many spaces were cut from the start of each line. */
      readonly indent: number;
      readonly body: string;
      readonly issues: readonly LayoutFinding[];
    };

type LayoutFinding = Omit<Issue, "path"> & { readonly line: number };

const openingFence = /^((?:[ \t]*\n)*)([ \t]*)-{3,}[ \t]*\n/;

/** Finds the frontmatter, tolerating a byte order mark, any line ending, leading blank lines, indentation and long rules. */
function splitFrontmatter(text: string): FrontmatterBlock {
  const marked = withoutByteOrderMark(text);
  const source = marked.includes("\r") ? marked.replace(/\r\n?/g, "\n") : marked;
  const opening = openingFence.exec(source.includes("\n") ? source : `${source}\n`);
  if (opening === null) return { type: "none" };
  const blankLines = (opening[1] ?? "").split("\n").length - 1;
  const indent = (opening[2] ?? "").length;
  const rest =
    indent === 0 ? source.slice(opening[0].length) : dedent(source.slice(opening[0].length), indent);
  const closing = findClosingFence(rest);
  if (closing === undefined) return { type: "unclosed", line: blankLines + 1 };
  const lines = closing.start === 0 ? [] : rest.slice(0, closing.start - 1).split("\n");
  const issues = judgeLayout({
    blankLines,
    indent,
    fence: closing.dashes,
    closingLine: blankLines + lines.length + 2,
  });
  return {
    type: "block",
    lines,
    firstLine: blankLines + 2,
    indent,
    body: rest.slice(closing.end).trim(),
    issues,
  };
}

/** The first line of three or more dashes and nothing else; the body behind it is never cut into lines. */
function findClosingFence(text: string): { start: number; end: number; dashes: number } | undefined {
  for (let start = 0; start !== -1; start = nextDashes(text, start)) {
    if (!text.startsWith("---", start)) continue;
    const lineEnd = text.indexOf("\n", start);
    const end = lineEnd === -1 ? text.length : lineEnd;
    const line = text.slice(start, end).trimEnd();
    if (/^-+$/.test(line)) return { start, end, dashes: line.length };
  }
  return undefined;
}

function nextDashes(text: string, from: number): number {
  const at = text.indexOf("\n---", from);
  return at === -1 ? -1 : at + 1;
}

interface Layout {
  readonly blankLines: number;
  readonly indent: number;
  readonly fence: number;
  readonly closingLine: number;
}

function judgeLayout({ blankLines, indent, fence, closingLine }: Layout): LayoutFinding[] {
  const issues: LayoutFinding[] = [];
  const warn = (code: string, line: number, message: string, advice: string): void => {
    issues.push({ severity: "warning", code, line, message, advice });
  };
  if (blankLines > 0) {
    warn("leading-blank", 1, "There are blank lines before the opening `---`.", "Start the file with `---`.");
  }
  if (indent > 0) {
    warn(
      "indented-frontmatter",
      blankLines + 1,
      "The whole file is indented.",
      "Remove the indentation of every line.",
    );
  }
  if (fence > 3) {
    warn(
      "long-dash-fence",
      closingLine,
      "The closing fence has more than three dashes.",
      "Write exactly `---`.",
    );
  }
  return issues;
}

/** Takes up to so many spaces from the start of every line. */
function dedent(text: string, indent: number): string {
  return text.replace(/^[ \t]+/gm, (spaces) => spaces.slice(Math.min(indent, spaces.length)));
}

/** One top-level key of a frontmatter with all lines that belong to it. */
interface FrontmatterEntry {
  readonly key: string;
  /** The text behind the colon on the key's own line. */
  readonly head: string;
  /** The lines below, as they are. */
  readonly below: readonly string[];
  /** Index of the key's line within the frontmatter, from 0. */
  readonly index: number;
}

interface EntriesReading {
  readonly entries: readonly FrontmatterEntry[];
  /** Indexes of lines that belong to no key. */
  readonly stray: readonly number[];
}

const keyLine = /^(["']?)([A-Za-z_][\w.-]*(?: [A-Za-z][\w-]*)?)\1[ \t]*:(?:\s+(.*)|)$/;
/** `name:value` without the blank; only believed for known keys. */
const tightKeyLine = /^([A-Za-z_][\w-]*):(\S.*)$/;
/** Speakers and headings of example dialogues that people paste below a description. */
const dialogueWord =
  /^(?:user|assistant|human|context|examples?|commentary|system|note|input|output|response|reasoning|scenario|task)$/i;

/** Cuts frontmatter lines into entries without a YAML parser, the way a person would read them. */
function splitEntriesByKey(lines: readonly string[], vocabulary: KeyVocabulary): EntriesReading {
  const entries: { key: string; head: string; below: string[]; index: number }[] = [];
  const stray: number[] = [];
  const atMargin = new Set(lines.map((line) => /^[\w-]+(?=:)/.exec(line)?.[0]));
  let openQuote: string | undefined;
  for (const [index, line] of lines.entries()) {
    const current = entries.at(-1);
    const start =
      startOfEntry(line, current?.key, vocabulary, openQuote) ??
      startOfSlippedEntry(line, current, atMargin, vocabulary);
    if (start !== undefined) {
      entries.push({ ...start, below: [], index });
      openQuote = /^(["'])(?!.*\1$)/.exec(start.head)?.[1];
    } else if (current !== undefined) {
      current.below.push(line);
      if (openQuote !== undefined && line.trimEnd().endsWith(openQuote)) openQuote = undefined;
    } else if (line.trim() !== "" && !line.startsWith("#")) stray.push(index);
  }
  return { entries, stray };
}

function startOfEntry(
  line: string,
  currentKey: string | undefined,
  vocabulary: KeyVocabulary,
  openQuote?: string,
): { key: string; head: string } | undefined {
  const match = keyLine.exec(line);
  if (match === null) {
    const tight = tightKeyLine.exec(line);
    if (tight === null || vocabulary.meaningOf(tight[1] ?? "").type !== "known") return undefined;
    return { key: tight[1] ?? "", head: (tight[2] ?? "").trim() };
  }
  const key = match[2] ?? "";
  const start = { key, head: (match[3] ?? "").trim() };
  if (vocabulary.meaningOf(key).type !== "unknown") return start;
  if (currentKey === undefined || !isKnownProse(currentKey, vocabulary)) return start;
  return openQuote === undefined && looksLikeField(key) ? start : undefined;
}

/**
 * A key that slipped to the right by a few spaces: the first one, or a limit that would drown in the text above it and
 * is nowhere else.
 */
function startOfSlippedEntry(
  line: string,
  current: Pick<FrontmatterEntry, "key" | "head"> | undefined,
  atMargin: ReadonlySet<string | undefined>,
  vocabulary: KeyVocabulary,
): { key: string; head: string } | undefined {
  const key = /^ {1,3}([\w-]+):/.exec(line)?.[1];
  if (key === undefined || vocabulary.meaningOf(key).type !== "known" || atMargin.has(key)) return undefined;
  const start = startOfEntry(line.trimStart(), undefined, vocabulary);
  if (current === undefined) return start;
  const isPlainProse = isKnownProse(current.key, vocabulary) && /^[^|>"'[{]/.test(current.head);
  return isPlainProse && vocabulary.restricting.has(key) ? start : undefined;
}

function isKnownProse(key: string, vocabulary: KeyVocabulary): boolean {
  const meaning = vocabulary.meaningOf(key);
  return meaning.type !== "unknown" && vocabulary.prose.has(meaning.key);
}

/** Inside prose only a plain lower-case word that is no speaker starts a new field. */
function looksLikeField(key: string): boolean {
  return /^[a-z][\w.-]*$/.test(key) && !dialogueWord.test(key);
}

/** The place of an entry's key in the file. */
function placeOfEntry(entry: FrontmatterEntry, firstLine: number, indent: number): Place {
  return { line: firstLine + entry.index, column: indent + 1, length: entry.key.length };
}

/** The value of one entry, read on its own. */
type RepairedValue =
  | { readonly type: "clean"; readonly value: unknown }
  | { readonly type: "repaired"; readonly value: unknown; readonly reason: string; readonly advice: string }
  | { readonly type: "unreadable"; readonly reason: string };

/** Reads an entry as YAML, then with its indentation fixed, then as the plain text or list it evidently is. */
function repairEntry(entry: FrontmatterEntry, vocabulary: KeyVocabulary): RepairedValue {
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
  if (isTextOrUnknown(entry.key, vocabulary)) return asText(entry, vocabulary);
  return withoutStrayLines(entry) ?? asList(entry) ?? asText(entry, vocabulary);
}

function isTextOrUnknown(key: string, vocabulary: KeyVocabulary): boolean {
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
    return { type: "unreadable", reason: "it contains nested keys that are not valid YAML" };
  }
  return { type: "repaired", value: text, ...explain(entry, text) };
}

/** Nested `key:` lines under an empty head are structure, and structure is never guessed from text. */
function isStructure(entry: FrontmatterEntry, vocabulary: KeyVocabulary): boolean {
  if (isTextOrUnknown(entry.key, vocabulary)) return false;
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

import type { Diagnostic, Issue, Locate, Place } from "@retinue/base/foundation/diagnostic.ts";
import { withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import { CORE_SCHEMA, load, mergeTag, YAMLException } from "js-yaml";
import {
  agentVocabulary,
  type FrontmatterEntry,
  type KeyVocabulary,
  placeOfEntry,
  splitEntriesByKey,
} from "./definition-keys.ts";
import { locateBelow } from "./locate-below.ts";
import { readPlainFrontmatter } from "./read-plain-frontmatter.ts";
import { type RepairedValue, repairEntry } from "./repair-entry.ts";

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

/** No person writes a frontmatter this long; beyond it, reading would only serve an attack. */
const largestFrontmatter = 256 * 1024;
const fewAliases = 20;
/** With `<<`: a limit that comes from there would be lost otherwise. */
const schema = CORE_SCHEMA.withTags(mergeTag);
/** A person fixes the first problems first; looking up the place of each of thousands would take long. */
const maxSearches = 100;

/** Reads a file's frontmatter: strict YAML first, and where that fails entry by entry. Never throws. */
export function readFrontmatter(text: string, vocabulary: KeyVocabulary = agentVocabulary): Frontmatter {
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

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { boundOutput } from "../bound-output.ts";
import { excludedFolders, splitGlobs, versionControlFolders } from "../glob-plan.ts";
import { createPathReader, createRecordReader, type FoundLine, type GrepRecord } from "../grep-record.ts";
import * as t from "../input-type.ts";
import { takeStart } from "../limit-text.ts";
import { shownPath } from "../resolve-workspace-path.ts";
import { runRipgrep } from "../run-ripgrep.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tool.ts";
import {
  builtinTool,
  failed,
  optionalChoice,
  optionalFlag,
  optionalNumber,
  optionalText,
} from "./builtin-tool.ts";
import { plural } from "./edit-tool.ts";
import {
  commonArguments,
  exclusionNote,
  findSearchRoot,
  isAboutSearch,
  mayShow,
  type SearchRoot,
  searchTimeLimitMs,
} from "./search-root.ts";

const input = t.object({
  pattern: t
    .string()
    .min(1)
    .describe("A regular expression in ripgrep's syntax; look-around and back references work."),
  path: optionalText("The file or folder to search; the working directory if absent."),
  output_mode: optionalChoice(
    ["content", "files_with_matches", "count"],
    "content: matching lines; files_with_matches (if absent): paths only, newest first; count: matching lines per file.",
  ),
  glob: optionalText(
    "Only files that match, such as *.js or src/**/*.{ts,tsx}; several parted by commas, ! excludes.",
  ),
  type: optionalText("Only files of a type that ripgrep knows, such as js, py, rust, go."),
  "-i": optionalFlag("Ignore the difference of capital and small letters."),
  "-n": optionalFlag("With content: show line numbers; true if absent."),
  "-o": optionalFlag("With content: show only the matching parts of lines."),
  "-A": optionalNumber("With content: lines to show after each match."),
  "-B": optionalNumber("With content: lines to show before each match."),
  "-C": optionalNumber("With content: lines to show around each match."),
  context: optionalNumber("The same as -C."),
  multiline: optionalFlag("Let a match span lines, and . match line breaks."),
  head_limit: optionalNumber("How many lines or entries to show; 250 if absent, 0 for all."),
  offset: optionalNumber("How many lines or entries to leave out first."),
});

type GrepInput = t.Infer<typeof input>;

export const grepTool: Tool = builtinTool<GrepInput>({
  name: "Grep",
  description: `Searches what is in files for a regular expression, with ripgrep. Prefer it to grep and rg in a shell.
- Files that .gitignore or .ignore hide, version control folders and binary files are left out; a path that names an ignored file searches it. Links are not followed.
- Braces and other signs of the syntax need a backslash to be taken literally: interface\\{\\}.
- Paths are relative to the working directory where they are inside it. Lines longer than 500 characters are cut.`,
  input,
  async call(given, context) {
    const root = await findSearchRoot(given.path ?? ".", context);
    if (root.type === "refused") return failed(root.reason);
    const mode = given.output_mode ?? "files_with_matches";
    const issues = createFindings(mode, {
      mayShow: (path) => mayShow(path, "Grep", context),
      place: (path) => resolve(root.directory, path),
    });
    const ending = await runRipgrep({
      arguments: [...grepArguments(given, mode, root), "--", root.target],
      directory: root.directory,
      isJudged: true,
      signal: context.signal,
      timeLimitMs: searchTimeLimitMs,
      take: issues.take,
    });
    if (ending.type === "unavailable" || ending.type === "killed") return failed(ending.errors);
    const found = issues.finish();
    const complaint = explainComplaint(ending.errors);
    if (ending.code === 2 && complaint !== undefined && found.total === 0) return failed(complaint);
    const notes = [
      ...(ending.type === "time"
        ? [`The search was ended after ${searchTimeLimitMs / 1000} seconds; narrow it.`]
        : []),
      ...(ending.type === "enough"
        ? ["There are more results than can be returned; narrow the search."]
        : []),
      ...(ending.code === 2 ? ["Some files could not be read."] : []),
      ...exclusionNote(context),
    ];
    return describeFindings(given, found, { context, mode, notes });
  },
});

type Root = Extract<SearchRoot, { type: "root" }>;

function grepArguments(given: GrepInput, mode: GrepMode, root: Root): string[] {
  const spansLines = given.multiline === true || /\\n|\n/.test(given.pattern);
  return [
    ...commonArguments(root.path),
    "--engine=auto",
    "--with-filename",
    "--no-heading",
    ...(given["-i"] === true ? ["--ignore-case"] : []),
    ...(spansLines ? ["--multiline"] : []),
    ...(given.multiline === true ? ["--multiline-dotall"] : []),
    ...modeArguments(given, mode),
    ...(given.type === undefined ? [] : [`--type=${given.type}`]),
    ...splitGlobs(given.glob ?? "").map((glob) => `--glob=${glob}`),
    ...excludedFolders(root.path, versionControlFolders),
    `--regexp=${given.pattern}`,
  ];
}

function modeArguments(given: GrepInput, mode: GrepMode): string[] {
  if (mode === "files_with_matches") return ["--files-with-matches"];
  if (mode === "count") return ["--count"];
  const around = given["-C"] ?? given.context;
  const lines = (flag: string, count: number | undefined): string[] =>
    count === undefined || count <= 0 ? [] : [`--${flag}=${Math.min(count, 1000)}`];
  return [
    "--line-number",
    "--max-columns=500",
    "--max-columns-preview",
    ...(given["-o"] === true ? ["--only-matching"] : []),
    ...lines("before-context", given["-B"] ?? around),
    ...lines("after-context", given["-A"] ?? around),
  ];
}

/** The part of ripgrep's complaint that says what is wrong with the search; none where it is about a file. */
function explainComplaint(complaint: string): string | undefined {
  const reason = /^error: (.+)$/m.exec(complaint)?.[1];
  if (reason !== undefined) {
    return `The pattern is not a valid regular expression: ${reason}. Put a backslash before characters that are meant literally.`;
  }
  const first = complaint
    .split("\n")
    .map((line) => line.replace(/^rg: /, "").trim())
    .find(isAboutSearch);
  return first === undefined ? undefined : `The search was refused: ${first.slice(0, 300)}`;
}

interface Reporting {
  readonly context: ToolContext;
  readonly mode: GrepMode;
  readonly notes: readonly string[];
}

/** The part of all results that is shown. */
interface Page {
  readonly entries: readonly string[];
  readonly offset: number;
  readonly limit: number;
  readonly total: number;
}

/** What a search found, as text for the model and as data. */
async function describeFindings(
  given: GrepInput,
  found: GrepFindings,
  { context, mode, notes }: Reporting,
): Promise<ToolOutcome> {
  const show = (path: string): string => shownPath(path, context.directory);
  const files = mode === "files_with_matches" ? await newestFirst(found.files) : byPath(found.files);
  const entries =
    mode === "content"
      ? contentLines(given, files, show)
      : files.map((file) => (mode === "count" ? `${show(file.path)}:${file.count}` : show(file.path)));
  const offset = Math.max(0, given.offset ?? 0);
  const limit = given.head_limit === undefined || given.head_limit < 0 ? defaultLimit : given.head_limit;
  const shown = entries.slice(offset, limit === 0 ? undefined : offset + limit);
  const page: Page = { entries: shown, offset, limit, total: entries.length };
  const matches = files.reduce((sum, { count }) => sum + count, 0);
  const summary = `${plural(matches, "matching line")} in ${plural(files.length, "file")}.`;
  const remarks = [
    ...describeCut(page),
    ...(mode === "count" && page.total > 0 ? [summary] : []),
    ...(found.binaries.length > 0
      ? [`Binary files that match: ${found.binaries.map(show).join(", ")}.`]
      : []),
    ...notes,
  ];
  const list = page.total === 0 ? "No matches." : page.entries.join("\n");
  const text = remarks.length === 0 ? list : `${list}\n\n[${remarks.join(" ")}]`;
  const shownFiles = mode === "content" ? files : files.slice(page.offset, page.offset + page.entries.length);
  return {
    content: (await boundOutput(text, maxOutput, context)).text,
    data: {
      mode,
      numFiles: files.length,
      filenames: shownFiles.slice(0, maxNames).map(({ path }) => show(path)),
      ...(mode === "files_with_matches"
        ? {}
        : { content: takeStart(page.entries.join("\n"), maxOutput), numMatches: matches }),
      ...(mode === "content" ? { numLines: page.entries.length } : {}),
      ...(page.offset + page.entries.length < page.total ? { appliedLimit: page.limit } : {}),
      ...(page.offset > 0 ? { appliedOffset: page.offset } : {}),
    },
  };
}

function contentLines(
  given: GrepInput,
  files: readonly FileFindings[],
  show: (path: string) => string,
): string[] {
  const withContext = [given["-A"], given["-B"], given["-C"], given.context].some(
    (count) => (count ?? 0) > 0,
  );
  const print = (line: FoundLine | undefined): string => {
    if (line === undefined) return "--";
    const mark = line.isMatch ? ":" : "-";
    return `${show(line.path)}${mark}${given["-n"] === false ? "" : `${line.line}${mark}`}${line.text}`;
  };
  return files.flatMap(({ lines }, at) => [...(withContext && at > 0 ? ["--"] : []), ...lines.map(print)]);
}

function describeCut({ entries, offset, total }: Page): string[] {
  if (entries.length === total) return [];
  if (entries.length === 0) return [`There are ${total} results; offset ${offset} is past the last.`];
  const end = offset + entries.length;
  const next = end < total ? ` Continue with offset ${end}, or narrow the search.` : "";
  return [`Results ${offset + 1} to ${end} of ${total}.${next}`];
}

function byPath(files: readonly FileFindings[]): FileFindings[] {
  return files.toSorted((a, b) => compareText(a.path, b.path));
}

async function newestFirst(files: readonly FileFindings[]): Promise<FileFindings[]> {
  if (files.length > maxStats) return byPath(files);
  const times = await Promise.all(
    files.map(async (file) => ({ file, time: (await stat(file.path).catch(() => undefined))?.mtimeMs ?? 0 })),
  );
  return times
    .sort((a, b) => b.time - a.time || compareText(a.file.path, b.file.path))
    .map(({ file }) => file);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const defaultLimit = 250;
const maxOutput = 30_000;
const maxNames = 1000;
const maxStats = 5000;

type GrepMode = "content" | "files_with_matches" | "count";

/** Lines of one file; undefined means lines that were left out. */
interface FileFindings {
  readonly path: string;
  readonly lines: readonly (FoundLine | undefined)[];
  readonly count: number;
}

interface GrepFindings {
  readonly files: readonly FileFindings[];
  readonly binaries: readonly string[];
  /** How many records there were of files that may be shown. */
  readonly total: number;
}

interface OpenFindings {
  readonly path: string;
  readonly lines: (FoundLine | undefined)[];
  count: number;
}

/**
 * Gathers what a search finds, by file, until there is more than can be read. Nothing about a file that may not be
 * shown counts anywhere, or the one that searches could learn what is in it by asking often enough.
 */
function createFindings(
  mode: GrepMode,
  {
    mayShow,
    place,
  }: { readonly mayShow: (path: string) => boolean; readonly place: (path: string) => string },
): { take(text: string): "more" | "enough"; finish(): GrepFindings } {
  const files = new Map<string, OpenFindings>();
  const binaries: string[] = [];
  const readPaths = createPathReader();
  const readRecords = createRecordReader();
  let total = 0;
  let characters = 0;
  let gap = false;

  // Files come one after the other, with many records each.
  let last: { readonly path: string; readonly isShown: boolean } | undefined;
  const isShown = (path: string): boolean => {
    if (last?.path !== path) last = { path, isShown: mayShow(path) };
    return last.isShown;
  };
  const fileAt = (path: string): OpenFindings | undefined => {
    if (!isShown(path)) return undefined;
    total += 1;
    const known = files.get(path) ?? { path, lines: [], count: 0 };
    files.set(path, known);
    return known;
  };
  const takeLine = (found: FoundLine): void => {
    const file = fileAt(found.path);
    if (file === undefined) return;
    if (gap && file.lines.length > 0) file.lines.push(undefined);
    gap = false;
    file.lines.push(found);
    if (found.isMatch) file.count += 1;
    characters += found.text.length;
  };
  const takeRecord = (record: GrepRecord): void => {
    if (record.type === "gap") gap = true;
    else if (record.type === "line") takeLine({ ...record.found, path: place(record.found.path) });
    else if (record.type === "binary") {
      const path = place(record.path);
      if (!isShown(path)) return;
      total += 1;
      binaries.push(path);
    } else {
      const file = fileAt(place(record.path));
      if (file !== undefined) file.count = record.count;
    }
  };

  return {
    take(text) {
      if (mode === "files_with_matches") {
        for (const path of readPaths(text)) fileAt(place(path));
      } else for (const record of readRecords(text)) takeRecord(record);
      return total >= maxRecords || characters >= maxCharacters ? "enough" : "more";
    },
    finish: () => ({ files: [...files.values()], binaries, total }),
  };
}

const maxRecords = 20_000;
const maxCharacters = 2_000_000;

import { stat } from "node:fs/promises";
import { boundOutput } from "../bound-output.ts";
import type { FoundLine } from "../grep-record.ts";
import { takeStart } from "../limit-text.ts";
import { shownPath } from "../resolve-workspace-path.ts";
import type { ToolContext, ToolOutcome } from "../tool.ts";
import type { GrepInput } from "./create-grep-tool.ts";
import { plural } from "./create-write-tool.ts";
import type { FileFindings, GrepFindings, GrepMode } from "./grep-findings.ts";

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
export async function describeFindings(
  given: GrepInput,
  found: GrepFindings,
  { context, mode, notes }: Reporting,
): Promise<ToolOutcome> {
  const show = (path: string): string => shownPath(path, context.directory);
  const files = mode === "files_with_matches" ? await newestFirst(found.files) : byPath(found.files);
  const page = pageOf(
    given,
    mode === "content" ? contentLines(given, files, show) : files.map((file) => entryOf(file, mode, show)),
  );
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

function pageOf(given: GrepInput, entries: readonly string[]): Page {
  const offset = Math.max(0, given.offset ?? 0);
  const limit = given.head_limit === undefined || given.head_limit < 0 ? defaultLimit : given.head_limit;
  const shown = entries.slice(offset, limit === 0 ? undefined : offset + limit);
  return { entries: shown, offset, limit, total: entries.length };
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

function entryOf({ path, count }: FileFindings, mode: GrepMode, show: (path: string) => string): string {
  return mode === "count" ? `${show(path)}:${count}` : show(path);
}

function describeCut({ entries, offset, total }: Page): string[] {
  if (entries.length === total) return [];
  if (entries.length === 0) return [`There are ${total} results; offset ${offset} is behind the last.`];
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

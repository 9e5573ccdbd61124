import { stat } from "node:fs/promises";
import type { FoundLine } from "../grep-output.ts";
import { takeStart } from "../output-limit.ts";
import type { ToolContext, ToolOutcome } from "../tool.ts";
import { shownPath } from "../workspace-path.ts";
import { boundOutput } from "../write-long-output.ts";
import type { GrepInput } from "./grep.ts";
import type { FileFindings, GrepFindings, GrepMode } from "./grep-findings.ts";
import { plural } from "./write.ts";

interface Telling {
  readonly context: ToolContext;
  readonly mode: GrepMode;
  readonly notes: readonly string[];
}

/** What a search found, as text for the model and as data. */
export async function describeFindings(
  given: GrepInput,
  found: GrepFindings,
  { context, mode, notes }: Telling,
): Promise<ToolOutcome> {
  const files = mode === "files_with_matches" ? await newestFirst(found.files) : byPath(found.files);
  const show = (path: string): string => shownPath(path, context.directory);
  const entries =
    mode === "content" ? contentLines(given, files, show) : files.map((file) => entryOf(file, mode, show));
  const offset = Math.max(0, given.offset ?? 0);
  const limit = given.head_limit === undefined || given.head_limit < 0 ? defaultLimit : given.head_limit;
  const shown = entries.slice(offset, limit === 0 ? undefined : offset + limit);
  const matches = files.reduce((sum, { count }) => sum + count, 0);
  const remarks = [
    ...describeCut({ offset, shown: shown.length, total: entries.length }),
    ...(mode === "count" && entries.length > 0
      ? [`${plural(matches, "matching line")} in ${plural(files.length, "file")}.`]
      : []),
    ...(found.binaries.length > 0
      ? [`Binary files that match: ${found.binaries.map(show).join(", ")}.`]
      : []),
    ...(found.hidden > 0
      ? [`${plural(found.hidden, "file")} with matches may not be read and are left out.`]
      : []),
    ...notes,
  ];
  const list = entries.length === 0 ? "No matches." : shown.join("\n");
  const text = remarks.length === 0 ? list : `${list}\n\n[${remarks.join(" ")}]`;
  const bounded = await boundOutput(text, maxOutput, context);
  const filenames = (
    mode === "content"
      ? files.map(({ path }) => show(path))
      : shown.map((_, at) => show(files[offset + at]?.path ?? ""))
  ).slice(0, maxNames);
  return {
    content: bounded.text,
    data: {
      mode,
      numFiles: files.length,
      filenames,
      ...(mode === "files_with_matches"
        ? {}
        : { content: takeStart(shown.join("\n"), maxOutput), numMatches: matches }),
      ...(mode === "content" ? { numLines: shown.length } : {}),
      ...(limit > 0 && shown.length < entries.length ? { appliedLimit: limit } : {}),
      ...(offset > 0 ? { appliedOffset: offset } : {}),
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

function entryOf({ path, count }: FileFindings, mode: GrepMode, show: (path: string) => string): string {
  return mode === "count" ? `${show(path)}:${count}` : show(path);
}

function describeCut(cut: {
  readonly offset: number;
  readonly shown: number;
  readonly total: number;
}): string[] {
  const { offset, shown, total } = cut;
  if (shown === total) return [];
  const end = offset + shown;
  const next = end < total ? ` Continue with offset ${end}, or narrow the search.` : "";
  return [
    shown === 0
      ? `There are ${total} results; offset ${offset} is behind the last.`
      : `Results ${offset + 1} to ${end} of ${total}.${next}`,
  ];
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

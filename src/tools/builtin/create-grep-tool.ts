import * as z from "zod";
import { excludedFolders, splitGlobs, versionControlFolders } from "../glob-plan.ts";
import { runRipgrep } from "../run-ripgrep.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tool.ts";
import { builtinTool, failed } from "./builtin-tool.ts";
import { describeFindings } from "./describe-findings.ts";
import { createFindings, type GrepMode } from "./grep-findings.ts";
import { optionalChoice, optionalFlag, optionalNumber, optionalText } from "./optional-text.ts";
import {
  commonArguments,
  exclusionNote,
  findSearchRoot,
  isAboutSearch,
  mayShow,
  type SearchRoot,
  searchTimeLimitMs,
} from "./search-root.ts";

const input = z.object({
  pattern: z
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

export type GrepInput = z.infer<typeof input>;

export function createGrepTool(): Tool {
  return builtinTool<GrepInput>({
    name: "Grep",
    description: `Searches what is in files for a regular expression, with ripgrep. Prefer it to grep and rg in a shell.
- Files that .gitignore or .ignore hide, version control folders and binary files are left out; a path that names an ignored file searches it. Links are not followed.
- Braces and other signs of the syntax need a backslash to be taken literally: interface\\{\\}.
- Paths are relative to the working directory where they are inside it. Lines longer than 500 characters are cut.`,
    input,
    async call(given, context) {
      const root = await findSearchRoot(given.path ?? ".", context);
      if (root.type === "refused") return failed(root.reason);
      return search(given, root, context);
    },
  });
}

type Root = Extract<SearchRoot, { type: "root" }>;

async function search(given: GrepInput, root: Root, context: ToolContext): Promise<ToolOutcome> {
  const mode = given.output_mode ?? "files_with_matches";
  const issues = createFindings(mode, (path) => mayShow(path, "Grep", context));
  const ending = await runRipgrep({
    arguments: [...grepArguments(given, mode, root), "--", root.path],
    directory: root.directory,
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
    ...(ending.type === "enough" ? ["There is more than could be kept; narrow the search."] : []),
    ...(ending.code === 2 ? ["Some files could not be read."] : []),
    ...exclusionNote(context),
  ];
  return describeFindings(given, found, { context, mode, notes });
}

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
    return `The pattern is not a valid regular expression: ${reason}. Put a backslash before signs that are meant literally.`;
  }
  const first = complaint
    .split("\n")
    .map((line) => line.replace(/^rg: /, "").trim())
    .find(isAboutSearch);
  return first === undefined ? undefined : `The search was refused: ${first.slice(0, 300)}`;
}

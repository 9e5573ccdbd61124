import { readdir } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { escapeName } from "@retinue/base/foundation/escape-control-tags.ts";
import { excludedFolders, globArguments, planGlob, versionControlFolders } from "../glob-plan.ts";
import { createPathReader } from "../grep-record.ts";
import * as t from "../input-type.ts";
import { pathForRules, shownPath } from "../resolve-workspace-path.ts";
import { runRipgrep } from "../run-ripgrep.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tool.ts";
import { builtinTool, failed, optionalText } from "./builtin-tool.ts";
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
  pattern: t.string().min(1).describe("Such as **/*.ts, src/**/*.{js,css} or README*."),
  path: optionalText("The folder to search; the working directory if absent."),
});

type GlobInput = t.Infer<typeof input>;

export const globTool: Tool = builtinTool<GlobInput>({
  name: "Glob",
  description: `Finds files by name, newest first. To search what is in files use Grep.
- \`*\` stays within one folder, \`**\` spans any number; a pattern without a slash matches in every folder below, but \`*\` alone lists one folder, with the names of the folders in it.
- Folders that .gitignore or .ignore hide are left out unless the pattern or the path names them or nothing else matches; .git and node_modules are left out unless they are named. Links are not followed.
- Gives at most 100 paths, relative to the working directory where they are inside it.`,
  input,
  pathsOf: (given, directory, home) => [pathForRules(rootOf(given), directory, home)],
  call: findFiles,
});

/** The folder that is searched: what the pattern names literally, below the given path. */
function rootOf({ pattern, path }: GlobInput): string {
  const { folder } = planGlob(pattern);
  return isAbsolute(folder) || folder === "~" || folder.startsWith("~/") ? folder : join(path ?? ".", folder);
}

async function findFiles(given: GlobInput, context: ToolContext): Promise<ToolOutcome> {
  const started = performance.now();
  const { pattern } = planGlob(given.pattern);
  const root = await findSearchRoot(rootOf(given), context);
  if (root.type === "refused")
    return root.missing && given.path === undefined
      ? describe(given, noFiles, { context, started })
      : failed(root.reason);
  if (!root.isFolder) {
    const found = pattern === undefined && mayShow(root.path, "Glob", context) ? [root.path] : [];
    return describe(given, { ...noFiles, paths: found, total: found.length }, { context, started });
  }
  let files: FoundFiles = noFiles;
  for (const attempt of attemptsFor(pattern ?? "*")) {
    files = await listFiles(root, attempt, context);
    if (files.error !== undefined) return failed(files.error);
    if (files.total > 0 || files.cut !== undefined) break;
  }
  const folders = pattern === undefined || /^\/?\*$/.test(pattern) ? await foldersIn(root.path, context) : [];
  return describe(given, { ...files, folders }, { context, started });
}

/** As it is; then with brackets as plain letters, as in a file called [id].ts; then among ignored files too. */
function attemptsFor(pattern: string): (readonly string[])[] {
  const plain = globArguments(pattern);
  const literal = pattern.includes("[") ? [globArguments(pattern.replace(/[[\]]/g, "\\$&"))] : [];
  return [plain, ...literal, [...plain, "--no-ignore"]];
}

interface FoundFiles {
  readonly paths: readonly string[];
  /** How many there are that may be shown; the others count nowhere, or their names could be found out by asking. */
  readonly total: number;
  /** Shown when one folder is listed, which would look empty without them. */
  readonly folders?: readonly string[];
  /** Why the list may not be complete. */
  readonly cut?: string;
  readonly error?: string;
}

const noFiles: FoundFiles = { paths: [], total: 0 };

async function listFiles(
  root: Extract<SearchRoot, { type: "root" }>,
  attempt: readonly string[],
  context: ToolContext,
): Promise<FoundFiles> {
  const paths: string[] = [];
  let total = 0;
  const readPaths = createPathReader();
  const ending = await runRipgrep({
    arguments: [
      "--files",
      "--sortr=modified",
      ...commonArguments(root.path),
      ...attempt,
      ...excludedFolders(root.path, [...versionControlFolders, "node_modules"]),
      "--",
      root.target,
    ],
    directory: root.directory,
    isJudged: true,
    signal: context.signal,
    timeLimitMs: searchTimeLimitMs,
    take(text) {
      for (const name of readPaths(text)) {
        const path = resolve(root.directory, name);
        if (mayShow(path, "Glob", context) && ++total <= maxShown) paths.push(path);
      }
      return total >= maxCounted ? "enough" : "more";
    },
  });
  const [error = ""] = ending.errors.trim().replace(/^rg: /, "").split("\n").filter(isAboutSearch);
  return {
    paths,
    total,
    ...(ending.type === "time"
      ? { cut: `The search took longer than ${searchTimeLimitMs / 1000} seconds.` }
      : {}),
    ...(ending.type === "enough" ? { cut: `Counting stopped at ${maxCounted} files.` } : {}),
    ...(ending.type === "unavailable" || ending.type === "killed" ? { error } : {}),
    ...(ending.code === 2 && error !== ""
      ? { error: `The pattern is not understood: ${error.slice(0, 300)}` }
      : {}),
  };
}

function describe(
  given: GlobInput,
  { paths, total, cut, folders = [] }: FoundFiles,
  { context, started }: { readonly context: ToolContext; readonly started: number },
): ToolOutcome {
  const filenames = paths.map((path) => shownPath(path, context.directory));
  const notes = [
    ...(total > paths.length
      ? [`The ${paths.length} newest of ${total} files; narrow the pattern or the path.`]
      : []),
    ...exclusionNote(context),
    ...(folders.length > 0 ? [`Folders here: ${folders.join(", ")}.`] : []),
    ...(cut === undefined ? [] : [cut]),
  ];
  const data = {
    filenames,
    durationMs: Math.round(performance.now() - started),
    numFiles: filenames.length,
    truncated: total > paths.length || cut !== undefined,
  };
  const list = filenames.length === 0 ? `No file matches ${given.pattern}.` : filenames.join("\n");
  return { content: notes.length === 0 ? list : `${list}\n\n[${notes.join(" ")}]`, data };
}

async function foldersIn(root: string, context: ToolContext): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => []);
  const names = entries.filter(
    (entry) => entry.isDirectory() && mayShow(join(root, entry.name), "Glob", context),
  );
  return names
    .map(({ name }) => `${escapeName(name)}/`)
    .sort()
    .slice(0, maxShown);
}

const maxShown = 100;
const maxCounted = 50_000;

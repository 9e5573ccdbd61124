// @io
import { lstatSync, realpathSync, statSync } from "node:fs";
import { posix } from "node:path";
import type { ProcessResult } from "@retinue/base/foundation/run-process.ts";
import { gitChangingCommands } from "../shell/programs/git-changing-commands.ts";
import { gitReadingCommands } from "../shell/programs/git-reading-commands.ts";
import { type OwnGitCall, runOwnGit } from "./own-git.ts";
import { type GitSetting, isPlainSetting, partsOf } from "./plain-settings.ts";

/** What git itself says about a place. */
export type RepositoryFacts =
  /** There is no repository, or no git. */
  | { readonly type: "none"; readonly hasNoGit?: true }
  /** Git does not say, so nothing is known. */
  | { readonly type: "unclear"; readonly reason: string }
  | Repository;

export interface Repository {
  readonly type: "repository";
  /** Where its data is; a linked working tree has a part of its own. Real paths. */
  readonly gitDirectory: string;
  readonly commonDirectory: string;
  /** The root of the working tree; absent in a bare repository, or in its data. */
  readonly top?: string;
  /** Every setting that holds here, of the person and the system too. */
  readonly settings: readonly GitSetting[];
  /** Of them, those that the folder brings, wherever they are written: in the repository, or in a file of the folder. */
  readonly own: readonly GitSetting[];
  /** Names of the filters that any of them has, and of those that the repository brings. */
  readonly filters: readonly string[];
  readonly ownFilters: readonly string[];
  /** It fetches what is missing when it is needed, in a way that is the person's own. */
  readonly fetchesPlainly?: true;
  /** The first setting of the repository's own that is not known to be plain, if there is one. */
  readonly steering?: string;
}

type AskOptions = Pick<OwnGitCall, "environment" | "folders" | "signal" | "timeLimitMs">;

const usualLimitMs = 5_000;

/** Asks git where a folder's repository is and what it configures, by two commands that start nothing. Never rejects. */
export async function askRepository(directory: string, options: AskOptions): Promise<RepositoryFacts> {
  if (!isFolder(directory)) return { type: "none" };
  const ask = (...words: readonly string[]): Promise<ProcessResult> =>
    runOwnGit({
      ...options,
      directory,
      words,
      timeLimitMs: options.timeLimitMs ?? usualLimitMs,
      // Another git, without this option, would take one.
      settings: ["safe.bareRepository=all"],
    });
  const [places, listed] = await Promise.all([
    ask("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel"),
    ask("config", "--list", "-z", "--show-origin", "--show-scope", "--includes"),
  ]);
  if (places.notStarted !== undefined) return { type: "none", hasNoGit: true };
  if (places.timedOut || listed.timedOut) return { type: "unclear", reason: "git takes too long to answer" };
  if (places.aborted || listed.aborted) return { type: "unclear", reason: "git was stopped" };
  const lines = places.stdout.split("\n").slice(0, -1);
  const isTreeless = places.exitCode === 128 && places.stderr.includes("must be run in a work tree");
  if (places.exitCode !== 0 && !isTreeless)
    return places.stderr.includes("fatal: not a git repository (or any")
      ? { type: "none" }
      : { type: "unclear", reason: complaintIn(places) };
  const [gitDirectory, commonDirectory, top, ...others] = lines.map(realOr);
  if (gitDirectory === undefined || commonDirectory === undefined || others.length > 0)
    return { type: "unclear", reason: "git's data is in a folder with an odd name" };
  if (listed.exitCode !== 0 || listed.truncated) return { type: "unclear", reason: complaintIn(listed) };
  const base = top ?? gitDirectory;
  const settings = readSettings(listed.stdout, base);
  if (settings === undefined) return { type: "unclear", reason: "git's answer is not understood" };
  const folders = [base, gitDirectory, commonDirectory, ...options.folders.map(realOr)];
  const own = settings.filter((setting) => isOwn(setting, folders));
  const isPlaced = top !== undefined && top === nearestWithGit(realOr(directory));
  const steering = findSteering(own, isPlaced) ?? findUnspeakable(settings);
  const fetchesPlainly =
    steering === undefined &&
    own.some(({ key }) => partsOf(key).name === "promisor" || key === "extensions.partialclone") &&
    !own.some(({ key }) => /^(?:core\.(?:sshcommand|askpass)|credential\.|http\.|url\.)/.test(key));
  return {
    type: "repository",
    gitDirectory,
    commonDirectory,
    ...(top === undefined ? {} : { top }),
    settings,
    own,
    filters: filtersIn(settings),
    ownFilters: filtersIn(own),
    ...(steering === undefined ? {} : { steering }),
    ...(fetchesPlainly ? { fetchesPlainly } : {}),
  };
}

/** Every value of a setting. */
export function valuesOf(facts: RepositoryFacts, key: string): readonly string[] {
  if (facts.type !== "repository") return [];
  return facts.settings.flatMap((setting) => (setting.key === key ? [setting.value ?? ""] : []));
}

/** Whether the folder brings a setting, wherever it is written: in the repository, or in a file that lies in the folder. */
function isOwn({ scope, file }: GitSetting, folders: readonly string[]): boolean {
  if (scope === "command") return false;
  if (scope !== "system" && scope !== "global") return true;
  return (
    file === undefined || folders.some((folder) => isBelow(file, folder) || isBelow(realOr(file), folder))
  );
}

/** Commands that git has built in, as far as they are known here. */
const commands: ReadonlySet<string> = new Set(
  [...gitReadingCommands, ...gitChangingCommands].map(([name]) => name),
);

function findSteering(own: readonly GitSetting[], isPlaced: boolean): string | undefined {
  // A submodule's data says where its files are; that is plain where it says what the files say too.
  return own.find(
    (setting) => !isPlainSetting(setting, commands) && !(setting.key === "core.worktree" && isPlaced),
  )?.key;
}

/** A filter whose name cannot be written as an option cannot be switched off. */
function findUnspeakable(settings: readonly GitSetting[]): string | undefined {
  const odd = filtersIn(settings).find((name) => !/^[\w.+-]+$/.test(name));
  return odd === undefined ? undefined : `filter.${odd}`;
}

function nearestWithGit(folder: string): string | undefined {
  for (let at = folder; ; at = posix.dirname(at)) {
    if (lstatSync(posix.join(at, ".git"), { throwIfNoEntry: false }) !== undefined) return at;
    if (at === posix.dirname(at)) return undefined;
  }
}

function filtersIn(settings: readonly GitSetting[]): readonly string[] {
  const names = settings.map(({ key }) => partsOf(key)).filter(({ section }) => section === "filter");
  return [...new Set(names.map(({ subsection }) => subsection))];
}

/** `scope NUL origin NUL key LF value NUL`, again and again. */
function readSettings(text: string, base: string): readonly GitSetting[] | undefined {
  const fields = text.split("\0");
  if (fields.pop() !== "" || fields.length % 3 !== 0) return undefined;
  return Array.from({ length: fields.length / 3 }, (_, at): GitSetting => {
    const [scope = "", origin = "", entry = ""] = fields.slice(3 * at, 3 * at + 3);
    const end = entry.indexOf("\n");
    const path = origin.startsWith("file:") ? origin.slice("file:".length) : undefined;
    return {
      scope,
      ...(path === undefined ? {} : { file: posix.resolve(base, path) }),
      key: end === -1 ? entry : entry.slice(0, end),
      ...(end === -1 ? {} : { value: entry.slice(end + 1) }),
    };
  });
}

function complaintIn({ stderr }: ProcessResult): string {
  const [line = "git failed"] = stderr.split("\n").filter((each) => each.startsWith("fatal: "));
  return line.replace(/^fatal: /, "").slice(0, 200);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function realOr(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

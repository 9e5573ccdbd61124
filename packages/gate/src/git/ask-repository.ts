// @io
import { lstatSync, realpathSync, statSync } from "node:fs";
import { posix } from "node:path";
import type { ProcessResult } from "@retinue/base/foundation/start-process.ts";
import { type RepositorySettings, readRepositorySettings } from "./git-settings.ts";
import { type OwnGitCall, runOwnGit } from "./run-own-git.ts";

/** What git itself says about a place. */
export type RepositoryFacts =
  /** There is no repository, or no git. */
  | { readonly type: "none"; readonly hasNoGit?: true }
  /** Git does not say, so nothing is known. */
  | { readonly type: "unclear"; readonly reason: string }
  | Repository;

export interface Repository extends RepositorySettings {
  readonly type: "repository";
  /** Where its data is; a linked working tree has a part of its own. Real paths. */
  readonly gitDirectory: string;
  readonly commonDirectory: string;
  /** The root of the working tree; absent in a bare repository, or in its data. */
  readonly top?: string;
}

export type AskOptions = Pick<OwnGitCall, "environment" | "folders" | "signal" | "timeLimitMs">;

const defaultLimitMs = 5_000;

/** Asks git where a folder's repository is and what it configures, by two commands that start nothing. Never rejects. */
export async function askRepository(directory: string, options: AskOptions): Promise<RepositoryFacts> {
  if (!isFolder(directory)) return { type: "none" };
  const ask = (...words: readonly string[]): Promise<ProcessResult> =>
    runOwnGit({
      ...options,
      directory,
      words,
      timeLimitMs: options.timeLimitMs ?? defaultLimitMs,
      // Another git, without this option, would take one.
      settings: ["safe.bareRepository=all"],
    });
  const [places, listed] = await Promise.all([
    ask("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel"),
    ask("config", "--list", "-z", "--show-origin", "--show-scope", "--includes"),
  ]);
  if (places.notStarted !== undefined) return { type: "none", hasNoGit: true };
  if (places.timedOut || listed.timedOut) return { type: "unclear", reason: "git took too long to answer" };
  if (places.aborted || listed.aborted) return { type: "unclear", reason: "git was stopped" };
  const lines = places.stdout.split("\n").slice(0, -1);
  const isTreeless = places.exitCode === 128 && places.stderr.includes("must be run in a work tree");
  if (places.exitCode !== 0 && !isTreeless)
    return places.stderr.includes("fatal: not a git repository (or any")
      ? { type: "none" }
      : { type: "unclear", reason: complaintIn(places) };
  const [gitDirectory, commonDirectory, top, ...others] = lines.map(realPath);
  if (gitDirectory === undefined || commonDirectory === undefined || others.length > 0)
    return { type: "unclear", reason: "git's data is in a folder with an odd name" };
  if (listed.exitCode !== 0 || listed.truncated) return { type: "unclear", reason: complaintIn(listed) };
  const base = top ?? gitDirectory;
  const settings = readRepositorySettings(listed.stdout, {
    base,
    folders: [base, gitDirectory, commonDirectory, ...options.folders.map(realPath)],
    isPlaced: top !== undefined && top === nearestWithGit(realPath(directory)),
    realPath,
  });
  if (settings === undefined) return { type: "unclear", reason: "git's answer could not be parsed" };
  return {
    type: "repository",
    gitDirectory,
    commonDirectory,
    top,
    ...settings,
  };
}

/** Every value of a setting. */
export function valuesOf(facts: RepositoryFacts, key: string): readonly string[] {
  if (facts.type !== "repository") return [];
  return facts.settings.flatMap((setting) => (setting.key === key ? [setting.value ?? ""] : []));
}

function nearestWithGit(folder: string): string | undefined {
  for (let at = folder; ; at = posix.dirname(at)) {
    if (lstatSync(posix.join(at, ".git"), { throwIfNoEntry: false }) !== undefined) return at;
    if (at === posix.dirname(at)) return undefined;
  }
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

export function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

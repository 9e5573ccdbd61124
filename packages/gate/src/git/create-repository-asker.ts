// @io
import { type BigIntStats, lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { posix } from "node:path";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { parseGitPointer } from "@retinue/base/foundation/parse-git-pointer.ts";
import {
  type AskOptions,
  askRepository,
  type Repository,
  type RepositoryFacts,
  realPath,
} from "./ask-repository.ts";

interface Remembered {
  /** The files that decide git's answer, and their state before it was asked. */
  readonly files: readonly string[];
  readonly state: string;
  /** Absent until an answer was given between two equal states. */
  readonly facts?: RepositoryFacts;
}

/** More folders than one program works in at the same time; those that were asked about first are forgotten first. */
const maxRemembered = 500;

/** Asks git about a folder. */
export type RepositoryAsker = (directory: string) => Promise<RepositoryFacts>;

/**
 * Asks git about folders as `askRepository` does, and again only once a file that decides the answer has changed. Every call has
 * the same options, and their environment stays as it is.
 */
export function createRepositoryAsker(options: AskOptions, now: () => number = Date.now): RepositoryAsker {
  const remembered = new Map<string, Remembered>();
  const asked = new Map<string, { readonly state: string; readonly answer: Promise<RepositoryFacts> }>();
  const remember = (directory: string, one: Remembered): void => {
    remembered.set(directory, one);
    const [oldest] = remembered.keys();
    if (remembered.size > maxRemembered && oldest !== undefined) remembered.delete(oldest);
  };
  const ask = async (
    directory: string,
    expected: readonly string[] | undefined,
    before: string | undefined,
  ): Promise<RepositoryFacts> => {
    const facts = await askRepository(directory, options);
    const files = filesBehind(facts, directory, options);
    remembered.delete(directory);
    if (files === undefined) return facts;
    const state = stateOf(files, now());
    const isSettled = state !== undefined && state === before && sameFiles(files, expected);
    if (state !== undefined) remember(directory, isSettled ? { files, state, facts } : { files, state });
    return facts;
  };
  return async (directory) => {
    const earlier = remembered.get(directory);
    const expected = earlier?.files ?? expectedFiles(directory, options);
    const before = expected && stateOf(expected, now());
    if (before === undefined) return ask(directory, expected, before);
    if (earlier?.facts !== undefined && before === earlier.state) return earlier.facts;
    const running = asked.get(directory);
    if (running?.state === before) return running.answer;
    const answer = ask(directory, expected, before);
    asked.set(directory, { state: before, answer });
    try {
      return await answer;
    } finally {
      if (asked.get(directory)?.answer === answer) asked.delete(directory);
    }
  };
}

type Places = Pick<Repository, "gitDirectory" | "commonDirectory" | "top">;

/** The files that will decide git's answer if it finds the repository where it looks like one; the answer itself says whether it did. */
function expectedFiles(directory: string, options: AskOptions): readonly string[] | undefined {
  try {
    const places = placesAbove(realpathSync.native(directory));
    return places && filesAt(places, directory, options);
  } catch {
    return undefined;
  }
}

function placesAbove(folder: string): Places | undefined {
  for (let at = folder; ; at = posix.dirname(at)) {
    const pointer = posix.join(at, ".git");
    const found = statSync(pointer, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) {
      const real = realpathSync.native(pointer);
      return { top: at, gitDirectory: real, commonDirectory: real };
    }
    if (found !== undefined) {
      const named = parseGitPointer(readFileSync(pointer, "utf8"), "gitdir: ");
      if (named === undefined) return undefined;
      const gitDirectory = realpathSync.native(posix.resolve(at, named));
      const common = parseGitPointer(readIfThere(posix.join(gitDirectory, "commondir")), "") ?? ".";
      return {
        top: at,
        gitDirectory,
        commonDirectory: realpathSync.native(posix.resolve(gitDirectory, common)),
      };
    }
    if (at === posix.dirname(at)) return undefined;
  }
}

function readIfThere(file: string): string {
  return statSync(file, { throwIfNoEntry: false }) === undefined ? "" : readFileSync(file, "utf8");
}

/** Where git looks for settings; undefined where that depends on more than these files. */
function filesBehind(
  facts: RepositoryFacts,
  directory: string,
  options: AskOptions,
): readonly string[] | undefined {
  if (facts.type === "none" && facts.hasNoGit !== true)
    return [directory, ...foundFirst(directory, undefined)];
  if (facts.type !== "repository") return undefined;
  if (facts.settings.some(({ key }) => /^include(?:if)?\./i.test(key))) return undefined;
  const others = facts.settings.flatMap(({ file }) => (file === undefined ? [] : [file]));
  return [...new Set([...filesAt(facts, directory, options), ...others])];
}

function filesAt(
  { gitDirectory, commonDirectory, top }: Places,
  directory: string,
  { environment }: AskOptions,
): readonly string[] {
  const home = environment["HOME"] ?? "/nonexistent";
  return [
    ...new Set([
      directory,
      ...foundFirst(directory, top),
      gitDirectory,
      posix.join(gitDirectory, "config.worktree"),
      posix.join(gitDirectory, "commondir"),
      posix.join(commonDirectory, "config"),
      environment["GIT_CONFIG_SYSTEM"] ?? "/etc/gitconfig",
      environment["GIT_CONFIG_GLOBAL"] ?? posix.join(home, ".gitconfig"),
      posix.join(environment["XDG_CONFIG_HOME"] ?? posix.join(home, ".config"), "git/config"),
    ]),
  ];
}

/** What makes a folder from here up to the root of the working tree a repository for git, or the data of one. */
function foundFirst(directory: string, top: string | undefined): readonly string[] {
  const files: string[] = [];
  for (let at = realPath(directory); ; at = posix.dirname(at)) {
    const pointer = posix.join(at, ".git");
    // Git takes a folder for the data of a repository that has all three.
    const data = [pointer, at].flatMap((place) =>
      ["HEAD", "objects", "refs"].map((name) => posix.join(place, name)),
    );
    files.push(pointer, ...data);
    if (at === top || at === posix.dirname(at)) return files;
  }
}

/** The kernel's clock of files ticks at most every 10 ms; what changed since its last tick may change again unseen. */
const settlingMs = 20;

/** Which files they are and when they last changed; undefined while one may still change without being seen. */
function stateOf(files: readonly string[], now: number): string | undefined {
  const latest = BigInt(now - settlingMs) * 1_000_000n;
  const states: string[] = [];
  for (const file of files) {
    for (const look of [lstatSync, statSync]) {
      let stats: BigIntStats | undefined;
      try {
        stats = look(file, { bigint: true, throwIfNoEntry: false });
      } catch (error) {
        // Without a look at it nothing is known of it; but below a file there is nothing.
        if (errorCode(error) !== "ENOTDIR") return undefined;
      }
      if (stats === undefined) {
        states.push("-");
      } else if (stats.isDirectory()) {
        // Which folder it is, and who may look into it; what is in it changes all the time.
        states.push(`${stats.dev}:${stats.ino}:${stats.mode}:${stats.uid}`);
      } else {
        if (stats.ctimeNs > latest) return undefined;
        states.push(`${stats.dev}:${stats.ino}:${stats.size}:${stats.ctimeNs}`);
      }
    }
  }
  return states.join(" ");
}

function sameFiles(files: readonly string[], others: readonly string[] | undefined): boolean {
  return files.join("\0") === others?.join("\0");
}

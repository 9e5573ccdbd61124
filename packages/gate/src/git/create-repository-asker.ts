// @io
import { type BigIntStats, lstatSync, statSync } from "node:fs";
import { posix } from "node:path";
import { type AskOptions, askRepository, type RepositoryFacts } from "./ask-repository.ts";

interface Remembered {
  /** The files that decide git's answer, and their state before it was asked. */
  readonly files: readonly string[];
  readonly state: string;
  /** Absent until an answer was given between two equal states. */
  readonly facts?: RepositoryFacts;
}

/**
 * Asks git about folders as `askRepository` does, and again only once a file that decides the answer has changed. For one
 * operation that runs many commands of git in the same few folders; every call has the same options.
 */
export function createRepositoryAsker(
  options: AskOptions,
  now: () => number = Date.now,
): (directory: string) => Promise<RepositoryFacts> {
  const remembered = new Map<string, Remembered>();
  return async (directory) => {
    const earlier = remembered.get(directory);
    const before = earlier === undefined ? undefined : stateOf(earlier.files, now());
    if (earlier?.facts !== undefined && before === earlier.state) return earlier.facts;
    const facts = await askRepository(directory, options);
    const files = filesBehind(facts, directory, options);
    if (files === undefined) {
      remembered.delete(directory);
      return facts;
    }
    const state = stateOf(files, now());
    const isSettled = state !== undefined && state === before && sameFiles(files, earlier?.files);
    if (state !== undefined)
      remembered.set(directory, isSettled ? { files, state, facts } : { files, state });
    return facts;
  };
}

/** Where git looks for settings; undefined where that depends on more than these files. */
function filesBehind(
  facts: RepositoryFacts,
  directory: string,
  { environment }: AskOptions,
): readonly string[] | undefined {
  if (facts.type !== "repository") return undefined;
  if (facts.settings.some(({ key }) => /^include(?:if)?\./i.test(key))) return undefined;
  const home = environment["HOME"] ?? "/nonexistent";
  const { gitDirectory, commonDirectory, top } = facts;
  return [
    ...new Set([
      directory,
      ...(top === undefined ? [] : [posix.join(top, ".git")]),
      gitDirectory,
      posix.join(gitDirectory, "config.worktree"),
      posix.join(gitDirectory, "commondir"),
      posix.join(commonDirectory, "config"),
      environment["GIT_CONFIG_SYSTEM"] ?? "/etc/gitconfig",
      environment["GIT_CONFIG_GLOBAL"] ?? posix.join(home, ".gitconfig"),
      posix.join(environment["XDG_CONFIG_HOME"] ?? posix.join(home, ".config"), "git/config"),
      ...facts.settings.flatMap(({ file }) => (file === undefined ? [] : [file])),
    ]),
  ];
}

/** The kernel's clock of files ticks at most every 10 ms; what changed since its last tick may change again unseen. */
const settlingMs = 50;

/** Which files they are and when they last changed; undefined while one may still change without being seen. */
function stateOf(files: readonly string[], now: number): string | undefined {
  const latest = BigInt(now - settlingMs) * 1_000_000n;
  const states: string[] = [];
  for (const file of files) {
    for (const look of [lstatSync, statSync]) {
      let stats: BigIntStats | undefined;
      try {
        stats = look(file, { bigint: true, throwIfNoEntry: false });
      } catch {
        // Without a look at it nothing is known of it.
        return undefined;
      }
      if (stats === undefined) {
        states.push("-");
      } else if (stats.isDirectory()) {
        // Which folder it is; what is in it changes all the time.
        states.push(`${stats.dev}:${stats.ino}`);
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

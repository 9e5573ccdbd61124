// @io
import { lstatSync } from "node:fs";
import { posix } from "node:path";
import { runOwnGit } from "./run-own-git.ts";

/** Where git finds hooks, where settings name another place than its own data. */
export interface HooksFolder {
  readonly folder: string;
  /** It holds other things too, so that only files with the names of hooks are meant. */
  readonly isWhole: boolean;
}

interface HooksQuestion {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folders: readonly string[];
}

/** Asks git which folder of hooks is configured around a place. */
export async function findHooksFolder(question: HooksQuestion): Promise<HooksFolder | undefined> {
  const top = topOf(question.directory);
  if (top === undefined) return undefined;
  const words = ["config", "-z", "--type=path", "--get-all", "core.hooksPath"];
  const { stdout, exitCode } = await runOwnGit({ ...question, words });
  // The last value is the one by which this git itself runs none.
  const value = exitCode === 0 ? stdout.split("\0").at(-3) : undefined;
  if (value === undefined || value === "" || value.startsWith("/dev/")) return undefined;
  const folder = posix.resolve(top, value);
  return { folder, isWhole: folder !== top };
}

const hooks =
  /^(?:(?:pre|post|prepare)-[a-z-]+|commit-msg|applypatch-msg|update|reference-transaction|push-to-checkout|proc-receive|sendemail-validate|fsmonitor-watchman)$/;

/** Whether writing to a path changes what git runs. */
export function isHook(path: string, { folder, isWhole }: HooksFolder): boolean {
  if (!isWhole) return posix.dirname(path) === folder && hooks.test(posix.basename(path));
  return path === folder || path.startsWith(`${folder}/`);
}

function topOf(directory: string): string | undefined {
  for (let at = directory; ; at = posix.dirname(at)) {
    if (lstatSync(posix.join(at, ".git"), { throwIfNoEntry: false }) !== undefined) return at;
    if (at === posix.dirname(at)) return undefined;
  }
}

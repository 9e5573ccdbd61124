import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { writeLock } from "@retinue/config/lock/lock-file.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { writeNewFile } from "../write-new-file.ts";
import { compareLock, type LockDifference } from "./compare-lock.ts";
import { gatherAllParts, isOfPlugins, type LockPlace } from "./gather-parts.ts";
import { judgeLock, type LockJudgement, noteLock } from "./judge-lock.ts";
import { lockFileOf, readLockFile } from "./read-lock-file.ts";

export type { LockDifference } from "./compare-lock.ts";
export type { LockJudgement } from "./judge-lock.ts";

export interface WrittenLock {
  readonly file: string;
  readonly status: "written" | "unchanged" | "would-write";
  /** How many parts are in it. */
  readonly parts: number;
  /** What is accepted by it that was not before. */
  readonly differences: readonly LockDifference[];
  readonly missingPlugins: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What the configuration of a project may do, as it was accepted: the file `retinue.lock`. */
export interface ProjectLock {
  /** Compares the whole project with its lock. Changes nothing. */
  check(): Promise<LockJudgement>;
  /** Writes the lock as the project is now. */
  write(options?: { readonly dryRun?: boolean }): Promise<WrittenLock>;
}

export function projectLock(place: () => Promise<LockPlace>): ProjectLock {
  return {
    check: async () => judgeLock(await place(), { isWhole: true }),
    write: async ({ dryRun = false } = {}) => write(await place(), dryRun),
  };
}

async function write(place: LockPlace, dryRun: boolean): Promise<WrittenLock> {
  const { cwd, home, env: environment, platform } = place;
  const file = await lockFileOf(cwd);
  const judgement = await judgeLock(place, { isWhole: true });
  const parts = await gatherAllParts(place);
  const cut = parts.diagnostics.find(({ code }) => code === "lock-search-cut");
  if (cut !== undefined)
    throw new RetinueError("lock-incomplete", cut.message, { advice: cut.advice ?? "Try again." });
  const differences =
    judgement.type === "compared"
      ? judgement.differences
      : compareLock({ before: [], after: parts.entries, stillThere: parts.others });
  const { entries, missingPlugins, diagnostics } = parts;
  const old = await readLockFile(file);
  const locked = old?.entries ?? [];
  // Parts of plugins that are not installed here stay as they were accepted.
  const text = writeLock([...entries, ...locked.filter(isOfPlugins(missingPlugins))]);
  const made = { file, parts: entries.length, differences, missingPlugins, diagnostics };
  if (dryRun) return { ...made, status: old?.text === text ? "unchanged" : "would-write" };
  const notes = createPaths({ cwd, home, environment, platform }).temporaryNotes;
  if (old?.text !== text) await writeNewFile(file, text, { replaces: true, notes });
  await noteLock(place);
  if (old?.text === text) return { ...made, status: "unchanged" };
  return { ...made, status: "written" };
}

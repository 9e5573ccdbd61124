// @io
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hasLiveOwner, withFileLock } from "@retinue/base/storage/owner-lock.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { isSessionId } from "../../journal/session-files.ts";
import { openTeamStore } from "../../teams/team-store.ts";

export interface TeamCleanup extends Pick<Paths, "teams" | "tasks" | "projects"> {
  readonly olderThanDays: number;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Dry run: reports what would be removed. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

export interface CleanedTeams {
  /** Folders of teams, and lists of tasks. */
  readonly removed: readonly string[];
  /** Old enough, but a process that still runs leads the team. */
  readonly inUse: readonly string[];
  readonly failed: readonly { readonly path: string; readonly why: string }[];
}

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Removes teams without a lead that were not written to for longer than the period, and lists of tasks that were not
 * changed for as long. A session that is continued later has its conversations, and no team.
 */
export async function cleanUpTeams(cleanup: TeamCleanup): Promise<CleanedTeams> {
  const report = {
    removed: [] as string[],
    inUse: [] as string[],
    failed: [] as { path: string; why: string }[],
  };
  const { olderThanDays, now, teams, tasks, signal } = cleanup;
  if (!Number.isFinite(olderThanDays) || olderThanDays < 0) return report;
  const before = now - olderThanDays * dayMs;
  const kept = new Set<string>();
  const attempt = async (path: string, remove: () => Promise<void>): Promise<void> => {
    try {
      await remove();
    } catch (error) {
      report.failed.push({ path, why: error instanceof Error ? error.message : String(error) });
    }
  };
  for (const name of foldersIn(teams)) {
    if (signal.aborted) return report;
    const path = join(teams, name);
    const { list, isLed } = describeTeam(name, cleanup);
    // The team and its tasks are as old as what was changed last of both.
    const isOld = (): boolean => Math.max(newestIn(path), newestIn(join(tasks, list))) < before;
    if (isLed && isOld()) report.inUse.push(path);
    if (isLed || !isOld()) kept.add(list);
    else
      await attempt(path, async () => {
        await removeOld(path, join(path, "config.json"), { isOld, dryRun: cleanup.dryRun });
        report.removed.push(path);
      });
  }
  for (const name of foldersIn(tasks)) {
    if (signal.aborted) return report;
    const path = join(tasks, name);
    const isOld = (): boolean => newestIn(path) < before;
    if (kept.has(name) || !isOld()) continue;
    await attempt(path, async () => {
      await removeOld(path, `${path}/`, { isOld, dryRun: cleanup.dryRun });
      report.removed.push(path);
    });
  }
  return report;
}

/** Under the lock that changes are made under, and only if it was not changed meanwhile. */
async function removeOld(
  path: string,
  lock: string,
  { isOld, dryRun }: { readonly isOld: () => boolean; readonly dryRun: boolean },
): Promise<void> {
  if (dryRun) return;
  if (!isOld()) return;
  await withFileLock(lock, () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }));
}

/** A config that cannot be read says nothing of a lead, so its age decides. */
function describeTeam(name: string, { teams, tasks, projects }: TeamCleanup) {
  try {
    const config = openTeamStore({ teams, tasks }, name).config();
    const id = config?.leadSessionId ?? "";
    const isLed =
      isSessionId(id) && foldersIn(projects).some((project) => isOwned(join(projects, project), id));
    return { list: config?.taskList ?? name, isLed };
  } catch {
    return { list: name, isLed: false };
  }
}

function isOwned(transcripts: string, sessionId: string): boolean {
  return hasLiveOwner(join(transcripts, `${sessionId}.jsonl`));
}

/** When anything in a folder was written last, locks aside; 0 where there is nothing. Links are not followed. */
function newestIn(folder: string): number {
  try {
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const files = names.filter((name) => !/\.(lock|tmp)$/.test(name)).map((name) => join(folder, name));
    return Math.max(
      0,
      ...files
        .map((file) => lstatSync(file, { throwIfNoEntry: false }))
        .map((status) => (status?.isFile() === true ? status.mtimeMs : 0)),
    );
  } catch {
    return 0;
  }
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

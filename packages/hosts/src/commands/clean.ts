import type { CleanedSessions } from "@retinue/core/kernel/project/project-sessions.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { type DisplayPlaces, displayPath } from "../shared/display-path.ts";
import { misuse } from "../shared/misuse.ts";
import { openFolder } from "../shared/open-project.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

export interface CleanOptions {
  readonly dryRun?: boolean;
  readonly days?: string;
  readonly json?: boolean;
}

/** `retinue clean`: removes sessions, teams and worktrees left untouched for longer than the period; never what is in use. */
export async function clean({ host }: CommandContext, options: CleanOptions): Promise<number> {
  const olderThanDays = readDays(options.days);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    const cleaned = await openFolder(host).sessions.clean({
      dryRun: options.dryRun === true,
      olderThanDays,
      signal: stop.signal,
    });
    const text =
      options.json === true ? describeAsJson(cleaned) : describe(cleaned, host, options.dryRun === true);
    host.stdout.write(text);
    const { sessions, teams } = cleaned;
    return sessions.failed.length + teams.failed.length > 0 || !sessions.isComplete ? 1 : 0;
  } finally {
    forget();
  }
}

function shortened(command: string): string {
  const line = command.replace(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

function readDays(written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const days = Number(written);
  if (written.trim() !== "" && Number.isFinite(days) && days >= 0) return days;
  throw misuse(
    `--days needs a number of days from 0, and it is ${JSON.stringify(written)}.`,
    "Write, for example, --days 30.",
  );
}

function describeAsJson(cleaned: CleanedSessions): string {
  return `${JSON.stringify({ version: 1, ...cleaned }, undefined, 2)}\n`;
}

function describe(
  { sessions, teams, worktrees, locks, commands, temporaries }: CleanedSessions,
  places: DisplayPlaces,
  isDryRun: boolean,
): string {
  const named = (path: string): string => stripControlCharacters(displayPath(path, places));
  const verb = isDryRun ? "would remove" : "removed";
  const lines = [
    ...commands.map(
      ({ group, command }) =>
        `${isDryRun ? "would end" : "ended"}  process group ${group}: ${stripControlCharacters(shortened(command))} (its session's process is gone)`,
    ),
    ...sessions.removed.map((path) => `${verb}  ${named(path)}`),
    ...teams.removed.map((path) => `${verb}  ${named(path)}`),
    ...worktrees.removed.map(({ path, reason }) => `${verb}  ${named(path)} (${reason})`),
    ...locks.map((path) => `${verb}  ${named(path)} (its process is gone)`),
    ...temporaries.map((path) => `${verb}  ${named(path)} (half written when its process died)`),
    ...sessions.inUse.map((path) => `kept  ${named(path)} (a running process writes it)`),
    ...teams.inUse.map((path) => `kept  ${named(path)} (a running process leads it)`),
    ...worktrees.kept.map(({ path, reason }) => `kept  ${named(path)} (${reason})`),
    ...[...sessions.failed, ...teams.failed].map(({ path, why }) => `failed  ${named(path)}: ${why}`),
    ...(worktrees.diagnostic === undefined ? [] : [`Worktrees were not checked: ${worktrees.diagnostic}`]),
    ...(sessions.isComplete ? [] : ["Stopped before the end; run it again to continue."]),
  ];
  const count = [sessions.removed, teams.removed, worktrees.removed, locks, commands, temporaries].flat()
    .length;
  const sum = count === 0 ? "Nothing is old enough to go." : `${count} ${isDryRun ? "would go" : "gone"}.`;
  return `${[...lines, sum].join("\n")}\n`;
}

// @io

import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { endProcessGroup, findGroupMembers } from "@retinue/base/foundation/spawn-process.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import {
  identifyProcess,
  isOnThisMachine,
  isRunning,
  type ProcessIdentity,
  thisProcess,
} from "@retinue/base/storage/process-identity.ts";
import {
  type CommandEnd,
  type CommandRecord,
  formatCommandRecord,
  parseCommandRecord,
} from "./command-record.ts";

interface CommandRecovery {
  /** The folder in which a session writes its commands down. */
  readonly folder: string;
  /** Dry run: reports what would be ended. */
  readonly dryRun?: boolean;
  /** How long a command may take to end after SIGTERM. */
  readonly graceMs?: number;
}

interface RecoveredCommands {
  /** Those that a process which is gone had started and that were still running. */
  readonly ended: readonly CommandRecord[];
  /** The commands in the background that the session knows of, oldest first, each with its end. */
  readonly background: readonly CommandRecord[];
}

/** The most commands in the background that are remembered. */
const maxRemembered = 100;

/** What is still running of a session whose process is gone is ended, and recorded as ended. Never rejects. */
export async function recoverCommands(recovery: CommandRecovery): Promise<RecoveredCommands> {
  const { folder, dryRun = false } = recovery;
  // A record that is not whole was being written when the kill came, and its command never ran.
  const names = (await readdir(folder).catch(() => [])).filter((name) => /^[bf][0-9a-f]+\.json$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const file = join(folder, name);
      const text = await readFile(file, "utf8").catch(() => undefined);
      const record = text === undefined ? undefined : parseCommandRecord(text);
      if (record !== undefined && `${record.id}.json` === name) return [record];
      if (text !== undefined && !dryRun && (await isOld(file))) await rm(file, { force: true });
      return [];
    }),
  );
  const records = await found.flat();
  const left = records.filter(
    ({ end, owner }) => end === undefined && isOnThisMachine(owner) && !isRunning(owner),
  );
  const ended = left.filter(({ leader }) => isStillRunning(leader));
  if (dryRun) return { ended, background: [] };
  await Promise.all(
    ended.map(({ leader }) => endProcessGroup(leader.pid, { graceMs: recovery.graceMs ?? 1_000 })),
  );
  const settled = new Map<CommandRecord, CommandRecord>();
  for (const record of left) settled.set(record, await settle(folder, record));
  const background = records
    .filter(({ kind }) => kind === "background")
    .map((record) => settled.get(record) ?? fromElsewhere(record))
    .filter(({ end }) => end !== undefined)
    .sort((a, b) => a.startedAt - b.startedAt);
  const forgotten = background.slice(0, Math.max(0, background.length - maxRemembered));
  await Promise.all(forgotten.map(({ id }) => rm(fileOf(folder, id), { force: true })));
  return { ended, background: background.slice(forgotten.length) };
}

/** It may be written just now. */
const writingMs = 10_000;

async function isOld(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > writingMs;
}

/**
 * Whether anything of the group is left that this leader headed. Numbers are given again only when no group has them any more,
 * so a leader that began at another moment shows that the group is gone. Where the system does not report when a process began,
 * nothing is ended.
 */
function isStillRunning(leader: ProcessIdentity): boolean {
  if (leader.started === "" || !isOnThisMachine(leader) || bootOf(leader) !== bootOf(thisProcess()))
    return false;
  const current = identifyProcess(leader.pid);
  if (current !== undefined) return current.started === leader.started;
  return findGroupMembers(leader.pid).length > 0;
}

/** The moment a process began is counted from the start of the machine, which is named in front of it. */
function bootOf({ started }: ProcessIdentity): string {
  return started.split("/")[0] ?? "";
}

/** What another machine or container ran cannot be ended or checked from here; its session continues here without it. */
function fromElsewhere(record: CommandRecord): CommandRecord {
  if (record.end !== undefined || isOnThisMachine(record.owner)) return record;
  return { ...record, end: { state: "stopped", note: cutOffNote, at: record.startedAt, isCutOff: true } };
}

async function settle(folder: string, record: CommandRecord): Promise<CommandRecord> {
  const file = fileOf(folder, record.id);
  const written =
    record.outputFile === undefined ? undefined : await stat(record.outputFile).catch(() => undefined);
  const at = Math.max(record.startedAt, written?.mtimeMs ?? 0);
  const settled: CommandRecord = {
    ...record,
    end: { state: "stopped", note: cutOffNote, at, isCutOff: true },
  };
  try {
    if (record.kind === "foreground") await rm(file, { force: true });
    else replaceWholeFile(file, formatCommandRecord(settled));
  } catch {
    // Tried again the next time.
  }
  return settled;
}

/** The report about a command in the background that ended because the agent it belongs to did. */
export const cutOffNote =
  "It was ended together with the agent that had started it; start it again if it is still needed.";

function fileOf(folder: string, id: string): string {
  return join(folder, `${id}.json`);
}

export type StartedCommand = Pick<CommandRecord, "kind" | "agentId" | "command" | "description"> &
  Partial<Pick<CommandRecord, "id" | "outputFile">>;

/** Where the commands of a session are written down while they run. */
export interface CommandRecords {
  /** Throws where the command cannot be written down; it must not run then. */
  begin(command: StartedCommand, leader: number): OpenCommand;
}

export interface OpenCommand {
  /** Never throws: the command has ended, whether that could be written down or not. */
  end(end: Omit<CommandEnd, "at">): void;
}

const maxCommand = 2_000;

/** `now` shows milliseconds since 1970. */
export function createCommandRecords(folder: string, now: () => number): CommandRecords {
  return {
    begin(command, leader) {
      const id = command.id ?? `f${randomBytes(6).toString("hex")}`;
      const identity = identifyProcess(leader);
      if (identity === undefined)
        throw new RetinueError("command-gone", "The process ended before its command could be run.");
      const record: CommandRecord = {
        ...command,
        id,
        command: command.command.slice(0, maxCommand),
        startedAt: now(),
        owner: thisProcess(),
        leader: identity,
      };
      const file = join(folder, `${id}.json`);
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        writeFileSync(file, formatCommandRecord(record), { mode: 0o600, flag: "wx" });
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        throw new RetinueError(
          "command-unrecorded",
          `It could not be written down, so it was not run: ${why}`,
        );
      }
      return { end: (end) => endRecord(file, record, { ...end, at: now() }) };
    },
  };
}

function endRecord(file: string, record: CommandRecord, end: CommandEnd): void {
  try {
    if (record.kind === "foreground") rmSync(file, { force: true });
    else replaceWholeFile(file, formatCommandRecord({ ...record, end }));
  } catch {
    // A process that finds the record later sees that its process group is gone.
  }
}

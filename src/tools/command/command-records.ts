// @io
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { replaceWholeFile } from "../../storage/file-error.ts";
import { identifyProcess, thisProcess } from "../../storage/process-identity.ts";
import { type CommandEnd, type CommandRecord, formatCommandRecord } from "./command-record.ts";

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
    // The one that finds the record later sees that its process group is gone.
  }
}

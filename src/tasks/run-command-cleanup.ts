import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isSessionId, sessionFiles } from "../journal/session-files.ts";
import { recoverCommands } from "../tools/run-command-recovery.ts";

export interface CommandCleanup {
  /** Holds one folder of transcripts per project. */
  readonly projects: string;
  /** Only tells what would be ended. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** A command that still ran although the process that had started it was gone. */
export interface EndedCommand {
  readonly sessionId: string;
  readonly agentId: string;
  /** The number of its process group. */
  readonly group: number;
  readonly command: string;
}

/** Ends the commands of all sessions whose process is gone. */
export async function cleanUpCommands({ projects, dryRun, signal }: CommandCleanup) {
  const ended: EndedCommand[] = [];
  for (const project of await namesIn(projects)) {
    for (const sessionId of (await namesIn(join(projects, project))).filter(isSessionId)) {
      if (signal.aborted) return ended;
      const { commands } = sessionFiles(join(projects, project), sessionId);
      const recovered = await recoverCommands({ folder: commands, dryRun });
      for (const { agentId, leader, command } of recovered.ended)
        ended.push({ sessionId, agentId, group: leader.pid, command });
    }
  }
  return ended;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

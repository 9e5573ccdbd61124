import type { UserMessage } from "../conversation/message.ts";
import type { SessionFiles } from "../journal/session-files.ts";
import { commandNotice } from "../tasks/notice.ts";
import type { CommandRecord } from "../tools/command-record.ts";
import { recoverCommands } from "../tools/run-command-recovery.ts";
import { type CommandRecords, createCommandRecords } from "../tools/write-command-records.ts";
import type { SessionOptions } from "./runtime-options.ts";
import type { RuntimeContext } from "./session-world.ts";

/** The commands of a session, over all processes that have run it. */
export interface SessionCommands {
  /** Absent where nothing is written down. */
  readonly records?: CommandRecords;
  /** Those in the background that ran in earlier processes. */
  readonly earlier: readonly CommandRecord[];
  /** What an agent that goes on should know of its commands that ended with it, where it was not told yet. */
  readonly news: (agentId: string, wasReported: (taskId: string) => boolean) => readonly UserMessage[];
}

/** Ends what a process that is gone has left running in this session, before anything of it goes on. */
export async function openSessionCommands(
  world: Pick<RuntimeContext, "keepsTranscripts" | "today">,
  { commands }: Pick<SessionFiles, "commands">,
  { planOnly }: Pick<SessionOptions, "planOnly">,
): Promise<SessionCommands> {
  if (!world.keepsTranscripts || planOnly === true) return { earlier: [], news: () => [] };
  const { background } = await recoverCommands({ folder: commands });
  return {
    records: createCommandRecords(commands, () => world.today().getTime()),
    earlier: background,
    news: (agentId, wasReported) =>
      background
        .filter(
          (record) => record.agentId === agentId && record.end?.isCutOff === true && !wasReported(record.id),
        )
        .map(commandNotice),
  };
}

import type { UserMessage } from "../conversation/message.ts";
import type { SessionFiles } from "../journal/session-files.ts";
import { commandNotice } from "../tasks/end-notice.ts";
import type { CommandRecord } from "../tools/command/command-record.ts";
import {
  type CommandRecords,
  createCommandRecords,
  recoverCommands,
} from "../tools/command/recover-commands.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** The commands of a session, over all processes that have run it. */
export interface SessionCommands {
  /** Absent where nothing is written down. */
  readonly records?: CommandRecords;
  /** Those in the background that ran in earlier processes. */
  readonly earlier: readonly CommandRecord[];
  /** What an agent that continues should know of its commands that ended with it, where it was not reported yet. */
  readonly pendingMessages: (
    agentId: string,
    wasReported: (taskId: string) => boolean,
  ) => readonly UserMessage[];
}

/** Ends what a process that is gone has left running in this session, before anything of it continues. */
export async function openSessionCommands(
  runtime: Pick<RuntimeContext, "keepsTranscripts" | "epochMs">,
  { commands }: Pick<SessionFiles, "commands">,
  { planOnly }: Pick<SessionSetup, "planOnly">,
): Promise<SessionCommands> {
  if (!runtime.keepsTranscripts || planOnly === true) return { earlier: [], pendingMessages: () => [] };
  const { background } = await recoverCommands({ folder: commands });
  return {
    records: createCommandRecords(commands, runtime.epochMs),
    earlier: background,
    pendingMessages: (agentId, wasReported) =>
      background
        .filter(
          (record) => record.agentId === agentId && record.end?.isCutOff === true && !wasReported(record.id),
        )
        .map(commandNotice),
  };
}

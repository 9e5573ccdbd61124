import { isRecord } from "../../foundation/json-record.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { ToolHost } from "../../tools/tool-host.ts";
import type { ControlChannel } from "./control-channel.ts";

/** Puts the questions of AskUserQuestion to the host, which answers them in the changed input of the call. */
export function createHostQuestions({
  channel,
  waiting,
  callId,
}: {
  readonly channel: Pick<ControlChannel, "ask">;
  readonly waiting: (isWaiting: boolean) => void;
  /** The call that asks. */
  readonly callId: () => string;
}): NonNullable<ToolHost["ask"]> {
  return async (questions, { signal }) => {
    waiting(true);
    try {
      const answer = await channel.ask(
        {
          subtype: "can_use_tool",
          tool_name: "AskUserQuestion",
          input: { questions },
          tool_use_id: callId(),
          permission_suggestions: [],
          requires_user_interaction: true,
          display_name: "AskUserQuestion",
        },
        signal,
      );
      const { behavior, updatedInput, message } = answer;
      if (behavior !== "allow")
        throw new RetinueError(
          "question-declined",
          typeof message === "string" ? message : "the host declined",
        );
      const answers = isRecord(updatedInput) ? updatedInput["answers"] : undefined;
      const entries = Object.entries(isRecord(answers) ? answers : {});
      return Object.fromEntries(
        entries.map(([question, text]) => [question, Array.isArray(text) ? text.join(", ") : String(text)]),
      );
    } finally {
      waiting(false);
    }
  };
}

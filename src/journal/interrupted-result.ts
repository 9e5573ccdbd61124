import type { Repeats } from "../conversation/call-intent.ts";
import {
  type AssistantMessage,
  type Message,
  type ToolResultBlock,
  toolCallsOf,
} from "../conversation/message.ts";

/** The answer to a call whose own result was never written down; what is not known counts as unsafe. */
export function interruptedResult(callId: string, repeats: Repeats = "unsafe"): ToolResultBlock {
  return {
    type: "tool_result",
    tool_use_id: callId,
    content: `Interrupted: the session ended before a result of this call was recorded. ${advice[repeats]}`,
    is_error: true,
  };
}

const advice: Readonly<Record<Repeats, string>> = {
  pure: "It only reads; call it again if you need it.",
  idempotent: "It may have had its effect or not, and repeating it does no harm.",
  unsafe:
    "The call may have run fully, partly or not at all, and it was not run again; a command that still ran was ended. Check what is there before you repeat it.",
};

/** Answers for those calls at the end of a conversation that have none. */
export function interruptedResults(messages: readonly Message[]): readonly ToolResultBlock[] {
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  const last = messages[at];
  if (last?.role !== "assistant") return [];
  const answered = new Set(messages.slice(at + 1).flatMap(answeredCalls));
  return callIdsOf(last)
    .filter((id) => !answered.has(id))
    .map((id) => interruptedResult(id));
}

function callIdsOf(message: AssistantMessage): readonly string[] {
  return toolCallsOf(message).map(({ id }) => id);
}

function answeredCalls({ role, content }: Message): readonly string[] {
  if (role !== "user" || typeof content === "string") return [];
  return content.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
}

import type { CallIntent } from "../conversation/call-intent.ts";
import { type AssistantMessage, toolCallsOf } from "../conversation/message.ts";
import { repeatsOf } from "../tools/tool-repeats.ts";
import { findTool } from "./authorize-call.ts";
import type { LoopPorts } from "./loop-ports.ts";

/** What the calls of an answer would do when repeated; a call of no tool there is does nothing. */
export function intentsOf(
  message: AssistantMessage,
  ports: LoopPorts,
): { readonly intents?: readonly CallIntent[] } {
  const calls = toolCallsOf(message);
  if (calls.length === 0) return {};
  const intents = calls.map(({ id, name }): CallIntent => {
    const tool = findTool(name, ports);
    return { callId: id, tool: tool?.name ?? name, repeats: tool === undefined ? "pure" : repeatsOf(tool) };
  });
  return { intents };
}

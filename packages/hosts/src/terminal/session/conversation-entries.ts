import type { Message } from "@retinue/core/conversation/message.ts";
import { contentText } from "./run-events.ts";
import type { AgentEntry } from "./terminal-session.ts";

/** A stored conversation as entries, for replaying its end and for the view of an agent. */
export function conversationEntries(messages: readonly Message[]): readonly AgentEntry[] {
  return messages.flatMap((message): readonly AgentEntry[] =>
    message.role === "user" ? userEntries(message.content) : assistantEntries(message.content),
  );
}

function userEntries(content: Extract<Message, { role: "user" }>["content"]): readonly AgentEntry[] {
  if (typeof content === "string") return promptEntries(content);
  return content.flatMap((block): readonly AgentEntry[] => {
    if (block.type === "text") return promptEntries(block.text);
    if (block.type !== "tool_result") return [{ type: "prompt", text: `(${block.type})` }];
    const result = { text: contentText(block.content), isError: block.is_error === true, durationMs: 0 };
    return [{ type: "result", callId: block.tool_use_id, result }];
  });
}

/** What the runtime itself says to the model is not what a person wrote. */
function promptEntries(text: string): readonly AgentEntry[] {
  const own = text
    .replace(/<(system-reminder|task-notification|agent-message|teammate-message)\b[^>]*>[\s\S]*?<\/\1>/g, "")
    .trim();
  return own === "" ? [] : [{ type: "prompt", text: own }];
}

function assistantEntries(
  content: Extract<Message, { role: "assistant" }>["content"],
): readonly AgentEntry[] {
  return content.flatMap((block): readonly AgentEntry[] => {
    if (block.type === "text") return [{ type: "text", text: String(block.text) }];
    if (block.type !== "tool_use") return [];
    return [{ type: "call", call: { id: String(block.id), tool: String(block.name), input: block.input } }];
  });
}

/** The last few prompts with all that came after them. */
export function lastEntries(entries: readonly AgentEntry[], maxPrompts: number): readonly AgentEntry[] {
  const prompts = entries.flatMap((entry, at) => (entry.type === "prompt" ? [at] : []));
  return entries.slice(prompts.at(-maxPrompts) ?? 0);
}

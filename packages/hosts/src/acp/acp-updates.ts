import type { SessionUpdate, ToolCallContent, ToolKind } from "@agentclientprotocol/sdk";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import {
  type Message,
  resultText,
  type ToolResultBlock,
  type ToolUseBlock,
} from "@retinue/core/conversation/message.ts";
import type { WireEvent } from "@retinue/core/protocol/agent-event.ts";

/** What an editor is notified of when something happens in a run; many events are nothing to it. */
export function acpUpdates(event: WireEvent): readonly SessionUpdate[] {
  switch (event.type) {
    case "model-streamed":
      if (event.event.type === "text-delta") return [agentText(event.event.text)];
      return event.event.type === "thinking-delta" ? [thought(event.event.text)] : [];
    case "assistant-answered":
      return event.message.content.flatMap((block) => (isCall(block) ? [toolCall(block, "pending")] : []));
    case "call-started":
      return [
        { sessionUpdate: "tool_call_update", toolCallId: event.call.id, status: "in_progress" },
        ...planOf(event.call),
      ];
    case "call-finished":
      return [
        {
          sessionUpdate: "tool_call_update",
          toolCallId: event.call.id,
          status: event.isError ? "failed" : "completed",
          content: [...(event.isError ? [] : diffOf(event.call)), ...textsOf(event.content ?? "")],
        },
      ];
    default:
      return [];
  }
}

/** A conversation so far, for an editor that opens it again. */
export function acpHistory(messages: readonly Message[]): readonly SessionUpdate[] {
  return messages.flatMap((message): readonly SessionUpdate[] => {
    if (message.role === "assistant")
      return message.content.flatMap((block): readonly SessionUpdate[] => {
        if (block.type === "text") return [agentText(block.text)];
        return isCall(block) ? [toolCall(block, "completed")] : [];
      });
    if (typeof message.content === "string") return [userText(message.content)];
    return message.content.flatMap((block): readonly SessionUpdate[] => {
      if (block.type === "text") return [userText(block.text)];
      if (block.type !== "tool_result") return [];
      const status = block.is_error === true ? "failed" : "completed";
      const about = { toolCallId: block.tool_use_id, status } as const;
      return [{ sessionUpdate: "tool_call_update", ...about, content: textsOf(block.content) }];
    });
  });
}

/** A call as it is shown before anything is decided about it. */
export function toolCall(
  call: ToolUseBlock,
  status: "pending" | "completed",
): Extract<SessionUpdate, { sessionUpdate: "tool_call" }> {
  const path = pathOf(call);
  return {
    sessionUpdate: "tool_call",
    toolCallId: call.id,
    title: titleOf(call),
    kind: kindOf(call.name),
    status,
    rawInput: call.input,
    content: diffOf(call),
    locations: path === undefined ? undefined : [{ path }],
  };
}

export function agentText(text: string): SessionUpdate {
  return { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
}

function userText(text: string): SessionUpdate {
  return { sessionUpdate: "user_message_chunk", content: { type: "text", text } };
}

function thought(text: string): SessionUpdate {
  return { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } };
}

function isCall(block: { readonly type: string }): block is ToolUseBlock {
  return block.type === "tool_use";
}

function inputOf({ input }: ToolUseBlock): JsonRecord {
  return isRecord(input) ? input : {};
}

const subjects = ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "path"];

function titleOf(call: ToolUseBlock): string {
  const input = inputOf(call);
  const subject = subjects.map((name) => input[name]).find((value) => typeof value === "string");
  return typeof subject === "string" ? `${call.name} ${subject.slice(0, 200)}` : call.name;
}

export function kindOf(tool: string): ToolKind {
  const effect = toolFacts.get(tool)?.effect;
  if (effect === "edit") return "edit";
  if (effect === "execute") return "execute";
  if (effect === "network") return "fetch";
  if (tool === "Grep" || tool === "Glob") return "search";
  return effect === "read" ? "read" : "other";
}

function pathOf(call: ToolUseBlock): string | undefined {
  const { file_path: file, notebook_path: notebook } = inputOf(call);
  const path = file ?? notebook;
  return typeof path === "string" ? path : undefined;
}

/** What an edit replaces, as the call has it. */
function diffOf(call: ToolUseBlock): ToolCallContent[] {
  const { file_path: path, content, old_string: oldText, new_string: newText } = inputOf(call);
  if (typeof path !== "string") return [];
  if (call.name === "Write" && typeof content === "string")
    return [{ type: "diff", path, oldText: null, newText: content }];
  if (call.name !== "Edit" || typeof oldText !== "string" || typeof newText !== "string") return [];
  return [{ type: "diff", path, oldText, newText }];
}

function textsOf(content: ToolResultBlock["content"]): ToolCallContent[] {
  const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return blocks.flatMap((block) => {
    const text = resultText([block]);
    return text === "" ? [] : [{ type: "content", content: { type: "text", text } } as const];
  });
}

const planStatuses = ["pending", "in_progress", "completed"] as const;

/** The list of what is to be done, where the agent keeps one. */
function planOf(call: ToolUseBlock): readonly SessionUpdate[] {
  const { todos } = inputOf(call);
  if (call.name !== "TodoWrite" || !Array.isArray(todos)) return [];
  const entries = todos.filter(isRecord).map(({ content, status }) => ({
    content: String(content),
    priority: "medium" as const,
    status: planStatuses.find((known) => known === status) ?? "pending",
  }));
  return [{ sessionUpdate: "plan", entries }];
}

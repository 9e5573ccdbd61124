import { type Message, type ToolResultBlock, textOf, toolCallsOf } from "../../conversation/message.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import type { ModelRequest, ToolSpecification } from "../model.ts";

/** A call of this task that has been answered. */
export interface FinishedCall {
  readonly name: string;
  readonly input: JsonRecord;
  readonly text: string;
  readonly isError: boolean;
}

/** A conversation as far as the offline model looks at it. */
export interface OfflineConversation {
  /** What was asked last. */
  readonly task: string;
  /** The calls since then. */
  readonly calls: readonly FinishedCall[];
  readonly tools: ReadonlyMap<string, ToolSpecification>;
  /** The working folder, where the system prompt shows it. */
  readonly directory?: string;
}

export function readOfflineConversation(request: ModelRequest): OfflineConversation {
  const { messages, system, toolChoice } = request;
  const start = messages.findLastIndex((message) => message.role === "user" && !holdsResults(message));
  const asked = messages[start];
  const offered = toolChoice === "none" ? [] : request.tools;
  const [, directory] = /^Working directory: (.+)$/m.exec(system.join("\n")) ?? [];
  return {
    task: asked === undefined ? "" : withoutReminders(textOf(asked)),
    calls: finishedCalls(messages.slice(start + 1)),
    tools: new Map(offered.map((tool) => [tool.name, tool])),
    ...(directory === undefined ? {} : { directory }),
  };
}

export function callsOf(conversation: OfflineConversation, name: string): readonly FinishedCall[] {
  return conversation.calls.filter((call) => call.name === name);
}

function holdsResults({ content }: Message): boolean {
  return typeof content !== "string" && content.some(({ type }) => type === "tool_result");
}

/** Texts that the program around us adds are not what somebody asked. */
function withoutReminders(text: string): string {
  return text.replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, "").trim();
}

function finishedCalls(messages: readonly Message[]): FinishedCall[] {
  const results = new Map<string, ToolResultBlock>();
  for (const message of messages) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const block of message.content)
      if (block.type === "tool_result") results.set(block.tool_use_id, block);
  }
  return messages.flatMap((message) => {
    if (message.role !== "assistant") return [];
    return toolCallsOf(message).flatMap(({ id, name, input }) => {
      const result = results.get(id);
      if (result === undefined) return [];
      const isError = result.is_error === true;
      return [{ name, input: isRecord(input) ? input : {}, text: resultText(result), isError }];
    });
  });
}

function resultText({ content }: ToolResultBlock): string {
  if (typeof content === "string") return withoutReminders(content);
  return withoutReminders(content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"));
}

import { isRecord } from "@retinue/base/foundation/json-record.ts";
import {
  referenceText,
  type ToolResultBlock,
  type ToolUseBlock,
} from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { createAnswerFold } from "@retinue/core/kernel/live/live-text.ts";
import { fallbackSentence, quotaSentence } from "../../shared/debug-line.ts";
import { refusalForPeople } from "../../shared/ending-advice.ts";
import type { DiffHunk, FileDiff, SessionEvent, TodoItem, ToolCall, ToolResult } from "./terminal-session.ts";

/** A step as the agent wrote it down. */
interface WrittenTodo {
  readonly content: string;
  readonly activeForm: string;
  readonly status: keyof typeof todoStates;
}

/** A step of the agent's list, in the words of what it does now. */
export function todoItem({ content, activeForm, status }: WrittenTodo): TodoItem {
  return { text: status === "in_progress" ? activeForm : content, state: todoStates[status] };
}

const todoStates = { pending: "pending", in_progress: "active", completed: "done" } as const;

/** Turns what happens in the main agent's run into what the terminal shows. */
export class RunEvents {
  readonly #answer = createAnswerFold();
  #hasText = false;

  read(event: RunEvent): readonly SessionEvent[] {
    this.#answer.onEvent(event);
    switch (event.type) {
      case "model-streamed":
        return this.#readModel(event.event);
      case "assistant-answered":
        return this.#endAnswer();
      case "model-retried": {
        const { attempt, maxAttempts, delayMs, message } = event;
        return [{ type: "retry", attempt, maxAttempts, delayMs, reason: message }];
      }
      case "model-fell-back":
        return [{ type: "notice", level: "warning", text: fallbackSentence(event) }];
      case "quota-waiting":
      case "quota-renewed":
        return [{ type: "notice", level: "warning", text: quotaSentence(event) }];
      case "call-started":
        return [{ type: "call-started", call: toCall(event.call) }];
      case "call-progressed":
        return [{ type: "call-progressed", callId: event.callId, text: event.text }];
      case "call-finished":
        return [{ type: "call-finished", call: toCall(event.call), result: toResult(event) }];
      case "compaction-started":
        return [{ type: "compaction", state: "started", text: "" }];
      case "context-compacted": {
        const text = `The conversation was compacted from ${count(event.preTokens)} to ${count(event.postTokens)} tokens.`;
        return [{ type: "compaction", state: "ended", text }];
      }
      default: {
        if (event.type === "agents-interrupted") {
          const names = event.agents
            .map(({ agentType, description }) => `${agentType} (${description})`)
            .join(", ");
          return [notice(`These agents were cut off when the session ended before: ${names}.`)];
        }
        if (event.type === "loop-noticed")
          return [notice(`${event.call.name}: the same call ${event.times} times with the same result.`)];
        if (event.type !== "run-stalled") return [];
        const seconds = Math.round(event.silentMs / 1000);
        return [notice(`No sign of life for ${seconds} s${event.stops ? "; the run is stopped" : ""}.`)];
      }
    }
  }

  #readModel(event: Extract<RunEvent, { type: "model-streamed" }>["event"]): readonly SessionEvent[] {
    if (event.type === "text-delta") return this.#text(event.text);
    if (event.type === "thinking-delta") return [{ type: "thinking", text: event.text }];
    if (event.type !== "block-ended" || event.block.type !== "text") return [];
    // Of a block whose text did not arrive in pieces the whole text is shown at its end.
    const isShown = this.#answer.open?.texts[event.index] !== undefined;
    return this.#text(isShown ? "\n\n" : `${textOfBlock(event.block)}\n\n`);
  }

  #text(text: string): readonly SessionEvent[] {
    this.#hasText = true;
    return [{ type: "text", text }];
  }

  #endAnswer(): readonly SessionEvent[] {
    const isOpen = this.#hasText;
    this.#hasText = false;
    return isOpen ? [{ type: "text", text: "\n" }] : [];
  }
}

function textOfBlock(block: { readonly type: string }): string {
  return "text" in block && typeof block.text === "string" ? block.text : "";
}

function notice(text: string): SessionEvent {
  return { type: "notice", level: "warning", text };
}

function count(tokens: number): string {
  return tokens.toLocaleString("en");
}

export function toCall({ id, name, input }: ToolUseBlock): ToolCall {
  return { id, tool: name, input };
}

export function toResult(event: Extract<RunEvent, { type: "call-finished" }>): ToolResult {
  const { content, data, denied, isError, durationMs } = event;
  const diff = diffOf(data);
  return {
    text: contentText(content ?? ""),
    isError,
    durationMs,
    refusal: denied === undefined ? undefined : refusalForPeople(denied),
    diff,
  };
}

export function contentText(content: ToolResultBlock["content"]): string {
  if (typeof content === "string") return content;
  return content
    .map((block) => {
      if (block.type === "text") return block.text;
      return block.type === "tool_reference" ? referenceText(block) : `(${block.type})`;
    })
    .join("\n");
}

/** What a tool that changes files keeps of the change. */
export function diffOf(data: unknown): FileDiff | undefined {
  if (!isRecord(data) || !Array.isArray(data["structuredPatch"])) return undefined;
  const hunks = data["structuredPatch"].filter(isHunk);
  return hunks.length === 0 ? undefined : { path: String(data["filePath"] ?? ""), hunks };
}

function isHunk(value: unknown): value is DiffHunk {
  return (
    isRecord(value) &&
    typeof value["oldStart"] === "number" &&
    typeof value["newStart"] === "number" &&
    Array.isArray(value["lines"]) &&
    value["lines"].every((line) => typeof line === "string")
  );
}

import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type {
  AssistantBlock,
  StopReason,
  ToolResultBlock,
  ToolUseBlock,
} from "../../conversation/message.ts";
import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { noUsage } from "../../conversation/usage.ts";
import { numberField, readAnswer, recordField, textField } from "../../inspection/read-answer.ts";
import { readEventLine } from "../../journal/event-lines.ts";
import { readAssistantBlocks, readUserBlocks } from "../../journal/read-assistant-blocks.ts";
import { readPastRun } from "../../journal/read-past-run.ts";

/**
 * Reads the lines of one agent's transcript as the events of its runs, in their order, as far as lines have them: of an
 * answer its start, each block as it is complete, and its end; then its calls with their results, what is added to the
 * conversation, waits for quotas, and the ending. What streams in between is in no line.
 */
export class JournalEvents {
  readonly #isMain: boolean;
  #answer: { readonly id: string; readonly blocks: AssistantBlock[]; record: JsonRecord } | undefined;
  /** Calls without a result. */
  readonly #calls = new Map<string, ToolUseBlock>();
  #turns = 0;
  #lastText = "";

  /** `isMain`: lines of children that other programs keep in the same file are left out. */
  constructor({ isMain }: { readonly isMain: boolean }) {
    this.#isMain = isMain;
  }

  /** The events of the next line. Total: any line will do. */
  read(record: JsonRecord): readonly RunEvent[] {
    if (this.#isMain && record.isSidechain === true) return [];
    const message = recordField(record, "message");
    if (record.type === "assistant" && message !== undefined) return this.#readAnswer(record, message);
    if (record.type === "user" && message !== undefined) return this.#readAddition(record, message);
    return record.type === "system" ? this.#readSystemLine(record) : [];
  }

  #readAnswer(record: JsonRecord, message: JsonRecord): readonly RunEvent[] {
    const id = textField(message, "id") ?? textField(record, "uuid") ?? "";
    const events: RunEvent[] =
      this.#answer !== undefined && this.#answer.id !== id ? [...this.#endAnswer()] : [];
    if (this.#answer === undefined) {
      this.#answer = { id, blocks: [], record };
      const model = textField(message, "model") ?? "unknown";
      events.push({ type: "model-streamed", event: { type: "message-started", id, model } });
    }
    this.#answer.record = record;
    for (const block of readAssistantBlocks(message.content)) {
      const index = this.#answer.blocks.push(block) - 1;
      if (block.type === "text") this.#lastText = block.text;
      events.push({ type: "model-streamed", event: { type: "block-ended", index, block } });
    }
    // Only the last line of an answer says why it ended.
    return textField(message, "stop_reason") === undefined ? events : [...events, ...this.#endAnswer()];
  }

  #endAnswer(): readonly RunEvent[] {
    if (this.#answer === undefined) return [];
    const { id, blocks, record } = this.#answer;
    this.#answer = undefined;
    const message = recordField(record, "message") ?? {};
    // What a fork has copied was paid for by the session it comes from.
    const isCopy = record.forkedFrom !== undefined;
    const { model, usage, costUsd } = readAnswer(record, message);
    const asked = blocks.filter((block): block is ToolUseBlock => block.type === "tool_use");
    for (const call of asked) this.#calls.set(call.id, call);
    const answered: RunEvent = {
      type: "assistant-answered",
      id,
      model,
      message: { role: "assistant", content: blocks },
      // One of the words of the API, or of its next version.
      stopReason: (textField(message, "stop_reason") ?? "end_turn") as StopReason,
      usage: isCopy ? noUsage : usage,
      costUsd: isCopy ? 0 : costUsd,
    };
    return [
      ...(record.isApiErrorMessage === true ? [] : [answered]),
      ...asked.map(
        (call): RunEvent => ({
          type: "call-started",
          call,
          effect: toolFacts.get(call.name)?.effect ?? "unknown",
        }),
      ),
    ];
  }

  #readAddition(record: JsonRecord, message: JsonRecord): readonly RunEvent[] {
    const events: RunEvent[] = [...this.#endAnswer()];
    const blocks = readUserBlocks(message.content);
    const results = blocks.filter((block) => block.type === "tool_result");
    const isAlone = results.length === 1;
    for (const result of results) events.push(...this.#finishCall(result, isAlone ? record : {}));
    const content = blocks.filter((block) => block.type !== "tool_result");
    if (content.length === 0) return events;
    this.#turns += 1;
    return [
      ...events,
      {
        type: "user-added",
        message: { role: "user", content },
        origin: record.isMeta === true ? "system" : "prompt",
      },
      { type: "turn-started", turn: this.#turns },
    ];
  }

  /** `record` is the line that holds nothing but this result. */
  #finishCall(block: ToolResultBlock, record: JsonRecord): readonly RunEvent[] {
    const call = this.#calls.get(block.tool_use_id);
    if (call === undefined) return [];
    this.#calls.delete(call.id);
    const facts = recordField(record, "toolCall") ?? {};
    return [
      {
        type: "call-finished",
        call,
        isError: block.is_error === true,
        content: block.content,
        data: record.toolUseResult,
        denied: textField(facts, "denied"),
        durationMs: numberField(facts, "durationMs") ?? 0,
      },
    ];
  }

  #readSystemLine(record: JsonRecord): readonly RunEvent[] {
    const ending = recordField(record, "runEnding");
    if (ending !== undefined)
      return [...this.#endAnswer(), { type: "run-ended", ending: this.#readEnding(ending, record) }];
    const event = readEventLine(record);
    return event === undefined ? [] : [event];
  }

  #readEnding(ending: JsonRecord, record: JsonRecord): RunEnding {
    const past = readPastRun(record);
    return {
      status: statuses.find((known) => known === ending.status) ?? "failed",
      reason: textField(ending, "reason") ?? "unknown",
      text: this.#lastText,
      error: textField(ending, "error"),
      denials: [],
      totals: {
        usage: past?.usage ?? noUsage,
        turns: numberField(ending, "turns") ?? 0,
        toolUses: numberField(ending, "toolUses") ?? 0,
        durationMs: past?.durationMs ?? 0,
        modelMs: numberField(ending, "modelMs") ?? 0,
        costUsd: past?.costUsd,
      },
    };
  }
}

const statuses = ["completed", "partial", "failed", "stopped"] as const;

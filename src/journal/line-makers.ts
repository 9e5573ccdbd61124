import type { TextBlock, ToolResultBlock, UserBlock } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { wireUsage } from "../conversation/usage.ts";
import {
  assistantLine,
  compactBoundaryLine,
  type LinePlace,
  systemLine,
  type ToolCallFacts,
  type TranscriptFacts,
  type UserLineFields,
  userLine,
} from "./transcript-facts.ts";

export type Answer = Extract<RunEvent, { type: "assistant-answered" }>;
type Addition = Extract<RunEvent, { type: "user-added" }>;
export type Compaction = Extract<RunEvent, { type: "context-compacted" }>;
/** `uuids` are those of all lines that are written together. */
export type MakeLine = (place: LinePlace, uuids: readonly string[]) => object;

/** Makes the lines of a transcript from what happened, one maker for each line. */
export const lineMakers = {
  answer: answerMakers,
  addition: additionMakers,
  compaction: compactionMakers,
  ending: endingMaker,
  lost: lostMaker,
  retry: retryMaker,
} as const;

/** An answer without content still has a line, which carries what it cost. */
function answerMakers(event: Answer, facts: TranscriptFacts): readonly MakeLine[] {
  const { message, ...answer } = event;
  const parts = message.content.length === 0 ? [[]] : message.content.map((block) => [block]);
  return parts.map((content, index) => {
    const stopReason = index === parts.length - 1 ? answer.stopReason : null;
    return (place) => assistantLine(place, facts, { ...answer, content, stopReason });
  });
}

function compactionMakers(
  event: Compaction,
  {
    facts,
    kept,
    before,
  }: { readonly facts: TranscriptFacts; readonly kept: readonly string[]; readonly before: string | null },
): readonly MakeLine[] {
  const { trigger, preTokens, postTokens, durationMs, by, model, usage, costUsd: cost, asked } = event;
  return [
    (place, [, summary = ""]) =>
      compactBoundaryLine(place, facts, {
        trigger,
        preTokens,
        postTokens,
        durationMs,
        logicalParentUuid: before,
        ...(kept.length === 0 ? {} : { preserved: { anchorUuid: summary, uuids: kept } }),
        summarizer: { by, model, usage, costUsd: cost, asked },
      }),
    (place) => userLine(place, facts, { message: event.summary, isCompactSummary: true }),
  ];
}

/** Each result is in a line of its own beside what programs keep of it; everything else follows in one line. */
function additionMakers(
  { message, results = {}, origin }: Addition,
  facts: TranscriptFacts,
  { answerLines, calls }: { readonly answerLines: ReadonlyMap<string, string>; readonly calls: CallFacts },
): readonly MakeLine[] {
  const { content } = message;
  const answers = typeof content === "string" ? [] : content.filter(isToolResult);
  const rest = typeof content === "string" ? content : content.filter((block) => !isToolResult(block));
  const provenance = provenanceOf(origin, facts);
  const makers = answers.map((block): MakeLine => {
    const fields = {
      message: { role: "user", content: [block] },
      toolUseResult: Object.hasOwn(results, block.tool_use_id)
        ? results[block.tool_use_id]
        : errorText(block),
      toolCall: calls.take(block.tool_use_id),
      sourceToolAssistantUUID: answerLines.get(block.tool_use_id),
    } as const;
    return (place) => userLine(place, facts, fields);
  });
  if (rest.length === 0) return makers;
  const joins = answers.length === 0 ? {} : { isPartOfResults: true };
  return [
    ...makers,
    (place) =>
      userLine(place, facts, {
        message: { role: "user", content: rest },
        ...provenance,
        ...joins,
        ...(message.mail === undefined ? {} : { mail: message.mail }),
      }),
  ];
}

/** The prompt of a child comes from its parent, so only the main conversation has a person in it. */
function provenanceOf(origin: Addition["origin"], facts: TranscriptFacts): Partial<UserLineFields> {
  if (origin === "system") return { isMeta: true };
  if (origin !== "prompt") return {};
  const kind = facts.agentId === undefined ? { kind: "human" } : undefined;
  return { origin: kind, permissionMode: facts.permissionMode };
}

function isToolResult(block: UserBlock): block is ToolResultBlock {
  return block.type === "tool_result";
}

function errorText({ content, is_error }: ToolResultBlock): string | undefined {
  if (is_error !== true) return undefined;
  if (typeof content === "string") return content;
  return content
    .filter((block): block is TextBlock => block.type === "text")
    .map(({ text }) => text)
    .join("\n");
}

/** What the run took, so that the file alone shows it. */
function endingMaker({ status, reason, error, totals }: RunEnding, facts: TranscriptFacts): MakeLine {
  const { usage, turns, toolUses, durationMs, modelMs, costUsd: cost } = totals;
  return (place) =>
    systemLine(place, facts, {
      subtype: "turn_duration",
      durationMs,
      isMeta: false,
      runEnding: { status, reason, error, turns, toolUses, modelMs, usage, costUSD: cost },
    });
}

/** An answer that broke off is no part of the conversation, but of what it cost. */
function lostMaker(
  { model, usage, costUsd: cost }: Extract<RunEvent, { type: "answer-lost" }>,
  facts: TranscriptFacts,
): MakeLine {
  const lostAnswer = { model, usage: wireUsage(usage), costUSD: cost };
  return (place) =>
    systemLine(place, facts, { subtype: "answer_lost", level: "info", isMeta: false, lostAnswer });
}

/** A request that failed and is made again, in the words existing viewers read. */
function retryMaker(
  { attempt, maxAttempts, delayMs, code, status, message }: Extract<RunEvent, { type: "model-retried" }>,
  facts: TranscriptFacts,
): MakeLine {
  return (place) =>
    systemLine(place, facts, {
      subtype: "api_error",
      level: "error",
      error: { code, status, message: message.slice(0, 500) },
      retryInMs: Math.round(delayMs),
      retryAttempt: attempt,
      maxRetries: maxAttempts,
    });
}

/** Remembers how calls go until their results are written down, all of one answer together. */
export interface CallFacts {
  notify(event: RunEvent): void;
  /** What is known of a call, once. */
  take(callId: string): ToolCallFacts | undefined;
}

/** `now` returns milliseconds since 1970. */
export function createCallFacts(now: () => number): CallFacts {
  const started = new Map<string, number>();
  const finished = new Map<string, ToolCallFacts>();
  return {
    notify(event) {
      // Calls of an answer before that one have their results.
      if (event.type === "assistant-answered") {
        started.clear();
        finished.clear();
      }
      if (event.type === "call-started") started.set(event.call.id, now());
      if (event.type === "call-finished")
        finished.set(event.call.id, factsOf(event, started.get(event.call.id)));
    },
    take(callId) {
      const facts = finished.get(callId);
      finished.delete(callId);
      return facts;
    },
  };
}

function factsOf(
  { durationMs, decidedMs, asked, denied, allowed, approval }: Extract<RunEvent, { type: "call-finished" }>,
  startedAt: number | undefined,
): ToolCallFacts {
  return {
    ...(startedAt === undefined ? {} : { startedAt }),
    durationMs: Math.round(durationMs),
    ...(decidedMs === undefined ? {} : { decidedMs: Math.round(decidedMs) }),
    ...(asked === true ? { asked } : {}),
    ...(denied === undefined ? {} : { denied }),
    ...(allowed === undefined ? {} : { allowed }),
    ...(approval === undefined ? {} : { approval }),
  };
}

import type {
  AssistantBlock,
  StopReason,
  TextBlock,
  ToolResultBlock,
  UserBlock,
  UserMessage,
} from "../conversation/message.ts";
import type { AskedSummary, RunEvent } from "../conversation/run-event.ts";
import { type Usage, wireUsage } from "../conversation/usage.ts";
import type { LinePlace, ToolCallFacts, TranscriptFacts } from "./transcript-facts.ts";

export type Answer = Extract<RunEvent, { type: "assistant-answered" }>;
type Addition = Extract<RunEvent, { type: "user-added" }>;
export type Compaction = Extract<RunEvent, { type: "context-compacted" }>;
/** `uuids` are those of all lines that are written together. */
export type MakeLine = (place: LinePlace, uuids: readonly string[]) => object;

/** Makes the lines of the conversation from what happened, one maker for each line. What is beside it is in `eventLines`. */
export const lineMakers = {
  answer: answerMakers,
  addition: additionMakers,
  compaction: compactionMakers,
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
    startedAt,
    durationMs: Math.round(durationMs),
    decidedMs: decidedMs === undefined ? undefined : Math.round(decidedMs),
    ...(asked === true ? { asked } : {}),
    denied,
    allowed,
    approval,
  };
}

interface UserLineFields {
  readonly message: UserMessage;
  readonly toolUseResult?: unknown;
  /** How the call went whose result this is. */
  readonly toolCall?: ToolCallFacts | undefined;
  readonly sourceToolAssistantUUID?: string | undefined;
  /** Said to the model, but not by a person: viewers leave it out. */
  readonly isMeta?: boolean;
  readonly isCompactSummary?: boolean;
  /** It was in the same message as the results before it. */
  readonly isPartOfResults?: boolean;
  readonly origin?: { readonly kind: string } | undefined;
  readonly permissionMode?: string | undefined;
  /** The keys of the team mail that this line delivers. */
  readonly mail?: readonly string[] | undefined;
}

/** Keys are in the order existing files have them; those without a value vanish when the line is written. */
export function userLine(place: LinePlace, facts: TranscriptFacts, fields: UserLineFields) {
  return {
    ...treePart(place, facts),
    type: "user",
    message: fields.message,
    isMeta: fields.isMeta === true ? true : undefined,
    isVisibleInTranscriptOnly: fields.isCompactSummary === true ? true : undefined,
    isCompactSummary: fields.isCompactSummary === true ? true : undefined,
    isPartOfResults: fields.isPartOfResults === true ? true : undefined,
    uuid: place.uuid,
    timestamp: place.timestamp,
    origin: fields.origin,
    permissionMode: fields.permissionMode,
    toolUseResult: fields.toolUseResult,
    toolCall: fields.toolCall,
    sourceToolAssistantUUID: fields.sourceToolAssistantUUID,
    retinueMail: fields.mail,
    ...sessionPart(facts),
  };
}

interface AssistantLineFields {
  readonly id: string;
  readonly model: string;
  /** At most one block: an answer is written as one line per block, each with the usage of the whole answer. */
  readonly content: readonly AssistantBlock[];
  /** Null on all but the last line of an answer. */
  readonly stopReason: StopReason | null;
  readonly usage: Usage;
  /** US dollars for the whole answer. */
  readonly costUsd?: number | undefined;
  /** From the request to the end of the answer. */
  readonly durationMs?: number | undefined;
  readonly requestId?: string | undefined;
}

export function assistantLine(place: LinePlace, facts: TranscriptFacts, fields: AssistantLineFields) {
  return {
    ...treePart(place, facts),
    message: {
      model: fields.model,
      id: fields.id,
      type: "message",
      role: "assistant",
      content: fields.content,
      stop_reason: fields.stopReason,
      stop_sequence: null,
      usage: wireUsage(fields.usage),
    },
    requestId: fields.requestId,
    costUSD: fields.costUsd,
    durationMs: fields.durationMs === undefined ? undefined : Math.round(fields.durationMs),
    type: "assistant",
    uuid: place.uuid,
    timestamp: place.timestamp,
    ...sessionPart(facts),
  };
}

/** A line that viewers may show beside the conversation; the model never sees it. */
export function systemLine(
  place: LinePlace,
  facts: TranscriptFacts,
  fields: { readonly subtype: string; readonly [key: string]: unknown },
) {
  return {
    ...treePart(place, facts),
    type: "system",
    ...fields,
    uuid: place.uuid,
    timestamp: place.timestamp,
    ...sessionPart(facts),
  };
}

interface CompactBoundaryFields {
  readonly trigger: "auto" | "manual";
  /** Tokens in the window before. */
  readonly preTokens: number;
  readonly postTokens?: number;
  readonly durationMs?: number;
  /** The last line before the boundary, which is no longer its parent. */
  readonly logicalParentUuid: string | null;
  /** Older lines that stay word for word; they follow the anchor, which is the summary. */
  readonly preserved?: { readonly anchorUuid: string; readonly uuids: readonly string[] };
  /** What the summary took. */
  readonly summarizer?: {
    readonly by: "model" | "rule";
    readonly model: string;
    readonly usage: Usage;
    readonly costUsd?: number | undefined;
    readonly asked?: AskedSummary | undefined;
  };
}

export function compactBoundaryLine(
  place: Omit<LinePlace, "parentUuid">,
  facts: TranscriptFacts,
  fields: CompactBoundaryFields,
) {
  const { trigger, preTokens, postTokens, durationMs, logicalParentUuid, preserved, summarizer } = fields;
  const { parentUuid, ...rest } = systemLine({ ...place, parentUuid: null }, facts, {
    subtype: "compact_boundary",
    content: "Conversation compacted",
    isMeta: false,
    level: "info",
    compactMetadata: {
      trigger,
      preTokens,
      postTokens,
      durationMs: durationMs === undefined ? undefined : Math.round(durationMs),
      preservedMessages: preserved,
      summarizer:
        summarizer === undefined
          ? undefined
          : {
              by: summarizer.by,
              model: summarizer.model,
              usage: wireUsage(summarizer.usage),
              costUSD: summarizer.costUsd,
              asked: summarizer.asked,
            },
    },
  });
  return { parentUuid, logicalParentUuid, ...rest };
}

function treePart({ parentUuid }: LinePlace, { agentId }: TranscriptFacts) {
  return { parentUuid, isSidechain: agentId !== undefined, agentId };
}

function sessionPart(facts: TranscriptFacts) {
  return {
    userType: "external",
    entrypoint: facts.entrypoint,
    cwd: facts.cwd,
    sessionId: facts.sessionId,
    version: facts.version,
    gitBranch: facts.gitBranch,
  };
}

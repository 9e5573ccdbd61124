import type { AssistantBlock, StopReason, UserMessage } from "../conversation/message.ts";
import type { AllowedCall, AskedSummary, UsedApproval } from "../conversation/run-event.ts";
import { type Usage, wireUsage } from "../conversation/usage.ts";

/** What every line of a conversation says about its session. */
export interface TranscriptFacts {
  /** Of the main conversation, in a child's file too. */
  readonly sessionId: string;
  readonly cwd: string;
  readonly version: string;
  /** How the session was started: `cli`, `sdk-ts`. */
  readonly entrypoint: string;
  readonly gitBranch?: string;
  /** Set for a child, whose lines are a side chain. */
  readonly agentId?: string;
  readonly permissionMode?: string;
}

/** Where a line is in the tree of the conversation. */
export interface LinePlace {
  readonly uuid: string;
  readonly parentUuid: string | null;
  /** ISO 8601, UTC, with milliseconds. */
  readonly timestamp: string;
}

/** What a transcript keeps of a call besides its result. Times in milliseconds. */
export interface ToolCallFacts {
  /** Since 1970; absent when it never ran. */
  readonly startedAt?: number;
  readonly durationMs: number;
  readonly decidedMs?: number;
  /** Somebody was asked whether it may run. */
  readonly asked?: boolean;
  /** Why it was not allowed to run. */
  readonly denied?: string;
  /** Why it was allowed to run. */
  readonly allowed?: AllowedCall;
  /** The answer that decided about it, and who gave it. */
  readonly approval?: UsedApproval;
}

export interface UserLineFields {
  readonly message: UserMessage;
  readonly toolUseResult?: unknown;
  /** How the call went whose result this is. */
  readonly toolCall?: ToolCallFacts | undefined;
  readonly sourceToolAssistantUUID?: string | undefined;
  /** Said to the model, but not by a person: viewers leave it out. */
  readonly isMeta?: boolean;
  readonly isCompactSummary?: boolean;
  /** It was said in the same message as the results before it. */
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

export interface AssistantLineFields {
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

export interface CompactBoundaryFields {
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

export function customTitleLine(sessionId: string, customTitle: string) {
  return { type: "custom-title", customTitle, sessionId };
}

export function aiTitleLine(sessionId: string, aiTitle: string) {
  return { type: "ai-title", aiTitle, sessionId };
}

export function tagLine(sessionId: string, tag: string) {
  return { type: "tag", tag, sessionId };
}

/** The title of a conversation as old files have it. */
export function summaryLine(summary: string, leafUuid: string) {
  return { type: "summary", summary, leafUuid };
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

import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { Message, ToolResultBlock, UserMessage } from "../conversation/message.ts";
import type { RequestRecord, RunEnding } from "../conversation/run-event.ts";
import type { DecidingOptions } from "../journal/session-choices.ts";
import type { RecordedCompaction } from "../loop/loop-ports.ts";
import type { ModelEvent, ToolSpecification } from "../models/model.ts";

export type RecordedMessageEnd = Extract<ModelEvent, { type: "message-ended" }>;

/** A result of a call as it was recorded. */
export interface RecordedResult {
  readonly block: ToolResultBlock;
  readonly data?: unknown;
  /** Why it was not allowed. */
  readonly denied?: string;
  readonly asked: boolean;
}

/** What happened in a run, in the order of the record. */
export type RecordedStep =
  | {
      readonly type: "answer";
      readonly answer: RecordedMessageEnd;
      readonly request?: RequestRecord;
      readonly costUsd?: number;
      /** The line by which a person or program names it. */
      readonly uuid: string;
    }
  | { readonly type: "results"; readonly results: readonly RecordedResult[]; readonly message: UserMessage }
  /** `said-by-loop` is what the loop or a hook says, `mail` what arrived from elsewhere. */
  | { readonly type: "message"; readonly kind: "said-by-loop" | "mail"; readonly message: UserMessage }
  | ({ readonly type: "compaction" } & RecordedCompaction);

export interface RecordedRun {
  /** The conversation before it. */
  readonly history: readonly Message[];
  readonly prompt: UserMessage;
  /** The line of the prompt. */
  readonly uuid: string;
  /** The plan that it ran by, as it was journaled; absent in transcripts of other programs. */
  readonly plan?: JsonRecord;
  readonly options: DecidingOptions;
  /** The agent and model that were named for the session. */
  readonly agent?: string;
  readonly model?: string;
  readonly steps: readonly RecordedStep[];
  /** Absent where it was cut off, or continues in the next run. */
  readonly ending?: Pick<RunEnding, "status" | "reason"> & { readonly error?: string };
}

export interface RecordedAgent {
  /** `main`, or the id of a child. */
  readonly id: string;
  /** What a person calls it. */
  readonly name: string;
  readonly runs: readonly RecordedRun[];
}

/** A session as it was recorded, complete as data. */
export interface Recording {
  readonly sessionId: string;
  readonly directory: string;
  readonly agents: readonly RecordedAgent[];
  /** System prompts and lists of tools by the hash that requests name them with. */
  readonly parts: ReadonlyMap<string, unknown>;
  /** What of it cannot be read any more, one sentence for each transcript; absent where nothing is wrong. */
  readonly damage?: readonly string[];
}

export const mainAgent = "main";

/** The system prompt that a request had; undefined where it was not kept. */
export function systemOf(
  { parts }: Pick<Recording, "parts">,
  request: RequestRecord,
): readonly string[] | undefined {
  const system = parts.get(request.system);
  return Array.isArray(system) && system.every((part) => typeof part === "string") ? system : undefined;
}

/** The tools that a request had; undefined where they were not kept. */
export function toolsOf(
  { parts }: Pick<Recording, "parts">,
  request: RequestRecord,
): readonly ToolSpecification[] | undefined {
  const tools = parts.get(request.tools);
  // Kept under their own hash, so they are what was written.
  return Array.isArray(tools) ? (tools as readonly ToolSpecification[]) : undefined;
}

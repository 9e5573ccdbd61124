import type { AllowedCall, UsedApproval } from "../conversation/run-event.ts";

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
  /** A person was asked whether it may run. */
  readonly asked?: boolean;
  /** Why it was not allowed to run. */
  readonly denied?: string;
  /** Why it was allowed to run. */
  readonly allowed?: AllowedCall;
  /** The answer that decided about it, and who gave it. */
  readonly approval?: UsedApproval;
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

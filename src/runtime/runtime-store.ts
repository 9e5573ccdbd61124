import type { RunEvent } from "../conversation/run-event.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../permissions/approver.ts";
import type { SessionOptions } from "./options/runtime-options.ts";

/** Where the sessions of a runtime are carried out instead of in this process. */
export interface RuntimeStore {
  /**
   * Hands a session to the workers, or the next prompt to one that is there. The events are those that can be seen from
   * here while it runs, and end with one `run-ended`. Leaving them early leaves the session running.
   */
  run(request: StoreRunRequest, options: { readonly signal: AbortSignal }): AsyncIterable<RunEvent>;
  /** Ends a session on whichever worker. */
  stop(sessionId: string, reason: string): Promise<void>;
  close(): Promise<void>;
}

export interface StoreRunRequest {
  readonly sessionId: string;
  readonly prompt: string;
  /** The next prompt of a session that is there. */
  readonly isResumed: boolean;
  readonly options: SessionOptions;
  /** Definitions keyed by name, as plain data. */
  readonly agents?: unknown;
  /** The folder of the runtime. */
  readonly directory: string;
  /** Where the person's own files are; absent: the home folder. */
  readonly home?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Answers calls that wait for a person; without it the session waits for an answer from elsewhere. */
  readonly approve?: (request: ApprovalRequest) => Promise<ApprovalAnswer>;
}

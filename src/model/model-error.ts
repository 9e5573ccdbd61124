import { RetinueError } from "../foundation/retinue-error.ts";
import { boundedText } from "./describe-body.ts";

/** Why a model call failed. The first group may succeed when tried again, the second will not. */
export type ModelErrorCode =
  | "rate-limited"
  | "overloaded"
  | "server-error"
  | "connection-failed"
  | "stream-cut"
  | "stream-malformed"
  | "stalled"
  | "context-too-long"
  | "invalid-request"
  | "unauthorized"
  | "not-found"
  | "unexpected-answer"
  | "untrusted-certificate"
  | "script-mismatch";

const passing: ReadonlySet<ModelErrorCode> = new Set([
  "rate-limited",
  "overloaded",
  "server-error",
  "connection-failed",
  "stream-cut",
  "stream-malformed",
  "stalled",
]);

/** What a provider answered instead of a message, in its own words. */
export interface ProviderAnswer {
  readonly status: number;
  /** Its name of the error, such as `overloaded_error`; empty where it gave none. */
  readonly type: string;
  readonly message: string;
}

export interface ModelErrorOptions {
  readonly status?: number;
  readonly answer?: ProviderAnswer;
  /** What the provider asked us to wait. */
  readonly retryAfterMs?: number;
  readonly requestId?: string;
  readonly advice?: string;
  readonly cause?: unknown;
}

/** The only error a Model's stream throws, besides the abort of its own signal. */
export class ModelError extends RetinueError {
  override readonly code: ModelErrorCode;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;
  readonly answer: ProviderAnswer | undefined;

  constructor(code: ModelErrorCode, message: string, options: ModelErrorOptions = {}) {
    // It becomes part of conversations, which are paid for by the word.
    super(code, boundedText(message), {
      ...(options.advice === undefined ? {} : { advice: options.advice }),
      ...(options.cause === undefined ? {} : { cause: options.cause }),
    });
    this.code = code;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.requestId = options.requestId;
    this.answer = options.answer;
  }

  get mayPass(): boolean {
    return passing.has(this.code);
  }
}

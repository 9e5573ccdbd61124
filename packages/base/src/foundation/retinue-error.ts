const brand = Symbol.for("retinue.error");

export interface RetinueErrorOptions {
  /** What the person can do about it, as one sentence. */
  readonly advice?: string | undefined;
  readonly cause?: unknown;
}

/** The one error this project throws: misuse, or a world that is broken. What is expected is a union, not a RetinueError. */
export class RetinueError extends Error {
  override readonly name = "RetinueError";
  readonly [brand] = true;
  readonly code: string;
  readonly advice: string | undefined;

  constructor(code: string, message: string, options: RetinueErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.advice = options.advice;
  }
}

/** Recognises a RetinueError from any copy of this package. */
export function isRetinueError(value: unknown): value is RetinueError {
  return typeof value === "object" && value !== null && brand in value;
}

import type { Decided } from "./run-plan.ts";

/** What one run may take, each with where the number came from. Turns have a field of their own in the plan. */
export interface RunLimits {
  /** From the start to the end, without the time a person is asked or a place is waited for. */
  readonly timeMs?: Decided<number>;
  /** Tokens read and written, all kinds together. */
  readonly tokens?: Decided<number>;
  /** US dollars. */
  readonly cost?: Decided<number>;
  readonly toolCalls?: Decided<number>;
  /** One tool call. */
  readonly toolTimeMs?: Decided<number>;
  /** Without any sign of life: reported at this time, stopped at twice of it. */
  readonly silenceMs?: Decided<number>;
  /** Equal rounds of calls that fail or bring nothing new. */
  readonly repeatedCalls?: Decided<number>;
}

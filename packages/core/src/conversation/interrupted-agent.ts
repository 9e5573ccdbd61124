/** A call whose outcome is unknown, for people and agents that read about it. */
export interface InFlightCall {
  readonly name: string;
  /** What of its input shows most, on one line. */
  readonly input: string;
  readonly repeats: Repeats;
}

/** A child that was found cut off when its session was taken up again. */
export interface InterruptedAgent {
  readonly id: string;
  readonly agentType: string;
  readonly description: string;
  readonly background: boolean;
  readonly inFlight: readonly InFlightCall[];
  /** Whether it continues already; `lost` when its task was not written down either. */
  readonly standing: "resumed" | "waiting" | "lost";
}

/**
 * What a second run of the same call does: `pure` only looks, `idempotent` leaves the world as the first one did,
 * `unsafe` may do its work twice.
 */
export const repetitions = ["pure", "idempotent", "unsafe"] as const;
export type Repeats = (typeof repetitions)[number];

/** A call that is about to run, as it is written down beforehand. */
export interface CallIntent {
  readonly callId: string;
  readonly tool: string;
  readonly repeats: Repeats;
}

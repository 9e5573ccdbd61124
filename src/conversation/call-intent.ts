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

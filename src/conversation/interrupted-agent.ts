import type { Repeats } from "./call-intent.ts";

/** A call of which no one knows what became of it, for people and agents that read of it. */
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

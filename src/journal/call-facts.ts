import type { RunEvent } from "../conversation/run-event.ts";
import type { ToolCallFacts } from "./transcript-line.ts";

/** Remembers how calls go until their results are written down, all of one answer together. */
export interface CallFacts {
  hear(event: RunEvent): void;
  /** What is known of a call, once. */
  take(callId: string): ToolCallFacts | undefined;
}

/** `now` tells milliseconds since 1970. */
export function createCallFacts(now: () => number): CallFacts {
  const started = new Map<string, number>();
  const finished = new Map<string, ToolCallFacts>();
  return {
    hear(event) {
      // Calls of an answer before that one have their results.
      if (event.type === "assistant-answered") {
        started.clear();
        finished.clear();
      }
      if (event.type === "call-started") started.set(event.call.id, now());
      if (event.type === "call-finished")
        finished.set(event.call.id, factsOf(event, started.get(event.call.id)));
    },
    take(callId) {
      const facts = finished.get(callId);
      finished.delete(callId);
      return facts;
    },
  };
}

function factsOf(
  { durationMs, decidedMs, asked, denied }: Extract<RunEvent, { type: "call-finished" }>,
  startedAt: number | undefined,
): ToolCallFacts {
  return {
    ...(startedAt === undefined ? {} : { startedAt }),
    durationMs: Math.round(durationMs),
    ...(decidedMs === undefined ? {} : { decidedMs: Math.round(decidedMs) }),
    ...(asked === true ? { asked } : {}),
    ...(denied === undefined ? {} : { denied }),
  };
}

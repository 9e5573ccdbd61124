import type { RunEvent } from "@retinue/core/conversation/run-event.ts";

/** What `--debug-file` keeps of an event: no contents, which may be secret and are in the transcript. */
export function debugLine(event: RunEvent): string | undefined {
  switch (event.type) {
    case "turn-started":
      return `turn ${event.turn}: the model is asked`;
    case "model-retried":
      return `the request failed and is made again: ${event.message}`;
    case "assistant-answered":
      return `${event.model} answered, ${event.stopReason}, ${event.usage.inputTokens} in, ${event.usage.outputTokens} out`;
    case "call-started":
      return `${event.call.name} ${event.call.id} started`;
    case "call-finished":
      return `${event.call.name} ${event.call.id} ${event.isError ? "failed" : "ended"} after ${Math.round(event.durationMs)} ms${event.denied === undefined ? "" : `; denied: ${event.denied}`}`;
    case "context-compacted":
      return `compacted from ${event.preTokens} to ${event.postTokens} tokens`;
    case "run-ended":
      return `the run ended: ${event.ending.status}, ${event.ending.reason}`;
    default:
      return undefined;
  }
}

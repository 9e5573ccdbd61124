import { estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import type { ModelEvent } from "../conversation/message.ts";
import { noUsage, type Usage } from "../conversation/usage.ts";

/** Counts what an answer has taken so far that may never be finished. */
export interface AttemptUsage {
  onEvent(event: ModelEvent): void;
  /** Since the last asking; undefined where the answer had not started. */
  take(): Usage | undefined;
}

/** `estimateInput` is used where the provider reports what it has read only with the end of its answer. */
export function createAttemptUsage(estimateInput: () => number): AttemptUsage {
  let started: Usage | undefined;
  let written = 0;
  return {
    onEvent(event) {
      switch (event.type) {
        case "message-started":
          started = event.usage ?? { ...noUsage, inputTokens: estimateInput() };
          written = 0;
          break;
        case "text-delta":
        case "thinking-delta":
          written += estimateTextTokens(event.text);
          break;
        case "input-delta":
          written += estimateTextTokens(event.json);
          break;
        case "message-ended":
          started = event.usage;
          written = 0;
      }
    },
    take() {
      const taken = started && { ...started, outputTokens: Math.max(started.outputTokens, written) };
      started = undefined;
      written = 0;
      return taken;
    },
  };
}

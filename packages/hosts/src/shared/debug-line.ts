import { endSentence } from "@retinue/base/foundation/first-sentence.ts";
import type { ModelFallback, RunEvent } from "@retinue/core/conversation/run-event.ts";

/** What `--debug-file` keeps of an event: no contents, which may be secret and are in the transcript. */
export function debugLine(event: RunEvent): string | undefined {
  switch (event.type) {
    case "turn-started":
      return `turn ${event.turn}: the model is asked`;
    case "model-retried":
      return `the request failed and is made again: ${event.message}`;
    case "model-fell-back":
      return fallbackSentence(event);
    case "quota-waiting":
    case "quota-renewed":
      return quotaSentence(event);
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

/** That a model is asked again, and why, for people. */
export function retrySentence({
  message,
  delayMs,
}: {
  readonly message: string;
  readonly delayMs: number;
}): string {
  return `${endSentence(message)} Trying again in ${Math.ceil(delayMs / 1000)} s.`;
}

/** That another model answers, for people. */
export function fallbackSentence({ from, to, code }: ModelFallback): string {
  return `${from} could not answer (${code}); ${to} answers instead.`;
}

/** That an agent waits for a new quota, or has one, for people. */
export function quotaSentence(event: Extract<RunEvent, { type: "quota-waiting" | "quota-renewed" }>): string {
  if (event.type === "quota-renewed") return `There is a new quota of ${event.provider}; the work continues.`;
  return `The quota of ${event.provider} is used up; waiting for the next one, ${untilText(event.until)}.`;
}

/** `until 03:00`, with the day where it is another one. */
export function untilText(until: number, now = new Date()): string {
  const at = new Date(until);
  const two = (number: number): string => String(number).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const isToday = at.toDateString() === now.toDateString();
  return isToday
    ? `until ${time}`
    : `until ${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

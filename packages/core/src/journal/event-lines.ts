import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { wireUsage } from "../conversation/usage.ts";
import { readUsage } from "./transcript-usage.ts";

/** An event that becomes one line beside the conversation. The model never sees it. */
interface EventLine<Event extends RunEvent> {
  /** What the line has besides its place, in the words existing viewers read. */
  readonly write: (event: Event) => LineFields;
  /** Reads it back, for viewers of a journal; absent: they are shown nothing of it. Total: any line will do. */
  readonly read?: (line: JsonRecord) => Event | undefined;
}

interface LineFields {
  readonly subtype: string;
  readonly [key: string]: unknown;
}

/** What each event that is no part of the conversation leaves in a transcript. A new record is a row here. */
export const eventLines: {
  readonly [Type in RunEvent["type"]]?: EventLine<Extract<RunEvent, { type: Type }>>;
} = {
  // A request that failed and is made again.
  "model-retried": {
    write: ({ attempt, maxAttempts, delayMs, code, status, message }) => ({
      subtype: "api_error",
      level: "error",
      error: { code, status, message: message.slice(0, 500) },
      retryInMs: Math.round(delayMs),
      retryAttempt: attempt,
      maxRetries: maxAttempts,
    }),
  },
  // Another model answers from here on, until the next prompt.
  "model-fell-back": {
    write: ({ from, to, code }) => ({
      subtype: "model_fallback",
      level: "warning",
      isMeta: false,
      modelFallback: { from, to, code },
    }),
  },
  // It waits for a new quota, until it says that there is one.
  "quota-waiting": {
    write: ({ provider, until }) => ({
      subtype: "quota_waiting",
      level: "warning",
      isMeta: false,
      quota: { provider, until: new Date(until).toISOString() },
    }),
    read({ subtype, quota }) {
      if (subtype !== "quota_waiting" || !isRecord(quota)) return undefined;
      const { provider } = quota;
      const until = typeof quota.until === "string" ? Date.parse(quota.until) : Number.NaN;
      if (typeof provider !== "string" || !Number.isFinite(until)) return undefined;
      return { type: "quota-waiting", provider, until };
    },
  },
  "quota-renewed": {
    write: ({ provider }) => ({
      subtype: "quota_renewed",
      level: "warning",
      isMeta: false,
      quota: { provider },
    }),
    read({ subtype, quota }) {
      if (subtype !== "quota_renewed" || !isRecord(quota)) return undefined;
      const { provider } = quota;
      return typeof provider === "string" ? { type: "quota-renewed", provider } : undefined;
    },
  },
  // An answer that broke off is no part of the conversation, but of what it cost.
  "answer-lost": {
    write: ({ model, usage, costUsd }) => ({
      subtype: "answer_lost",
      level: "info",
      isMeta: false,
      lostAnswer: { model, usage: wireUsage(usage), costUSD: costUsd },
    }),
    read({ subtype, lostAnswer, forkedFrom }) {
      // What a fork has copied was paid for by the session it comes from.
      if (subtype !== "answer_lost" || !isRecord(lostAnswer) || forkedFrom !== undefined) return undefined;
      const { model, usage, costUSD } = lostAnswer;
      return {
        type: "answer-lost",
        model: typeof model === "string" ? model : "unknown",
        usage: readUsage(usage),
        costUsd: typeof costUSD === "number" ? costUSD : undefined,
      };
    },
  },
  // Read together with the last message.
  "run-idled": { write: ({ ending }) => endingFields(ending) },
  "run-ended": { write: ({ ending }) => endingFields(ending) },
};

/** What the run took, so that the file alone shows it. */
function endingFields({ status, reason, error, totals, fallbacks, receipt, quote }: RunEnding): LineFields {
  const { usage, turns, toolUses, durationMs, modelMs, costUsd: costUSD } = totals;
  return {
    subtype: "turn_duration",
    durationMs,
    isMeta: false,
    runEnding: {
      status,
      reason,
      error,
      turns,
      toolUses,
      modelMs,
      usage,
      costUSD,
      fallbacks,
      receipt,
      quote,
    },
  };
}

/** What an event leaves beside the conversation; undefined where it leaves nothing. */
export function eventFields<Event extends RunEvent>(event: Event): LineFields | undefined {
  // The row of an event takes that event.
  const line = eventLines[event.type] as EventLine<Event> | undefined;
  return line?.write(event);
}

/** The event that a line beside the conversation was written for, where it can be read back. */
export function readEventLine(line: JsonRecord): RunEvent | undefined {
  if (line.type !== "system") return undefined;
  for (const { read } of Object.values(eventLines)) {
    const event = read?.(line);
    if (event !== undefined) return event;
  }
  return undefined;
}

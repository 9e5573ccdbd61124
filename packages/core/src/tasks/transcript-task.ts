import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import { readEventLine } from "../journal/event-lines.ts";
import { sumTranscriptUsage } from "../journal/transcript-usage.ts";
import { interruptedReason } from "../protocol/agent-state.ts";

/** What a child's transcript shows of it. */
export interface TranscriptTask {
  /** How its last run ended; absent while it runs, and where it was cut off. */
  readonly state?: RunEnding["status"];
  readonly reason?: string;
  readonly startedAt?: number;
  readonly lastSignAt?: number;
  readonly tokens: number;
  readonly toolUses: number;
  readonly costUsd?: number;
  /** Set where the last thing it said is that it waits for a new quota; `until` in milliseconds since 1970. */
  readonly waitingForQuota?: { readonly provider: string; readonly until: number };
}

/** Total: any lines will do. */
export function foldTranscript(records: readonly JsonRecord[]): TranscriptTask {
  const { usage, toolUses, costUsd: cost } = sumTranscriptUsage(records);
  const times = records.flatMap(({ timestamp }) => {
    const time = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    return Number.isFinite(time) ? [time] : [];
  });
  const [startedAt] = times;
  const lastSignAt = times.at(-1);
  const waiting = quotaWaitOf(records);
  return {
    ...endingOf(records.findLast(isPartOfRun)),
    waitingForQuota: waiting,
    startedAt,
    lastSignAt,
    tokens: contextTokens(usage) + usage.outputTokens,
    toolUses,
    costUsd: cost,
  };
}

/** The wait for a quota that a conversation is in, from its lines. */
export function quotaWaitOf(
  records: readonly JsonRecord[],
): { readonly provider: string; readonly until: number } | undefined {
  const last = records.findLast(changesQuotaWait);
  const event = last && readEventLine(last);
  return event?.type === "quota-waiting" ? { provider: event.provider, until: event.until } : undefined;
}

/** A line that begins a wait for a quota, or shows that there is none any more. */
export function changesQuotaWait(record: JsonRecord): boolean {
  // One whose process ended meanwhile still waits: the process that takes it up continues there.
  const ending = record.runEnding;
  if (isRecord(ending) && ending.reason === interruptedReason) return false;
  return isPartOfRun(record) || record.subtype === "quota_waiting" || record.subtype === "quota_renewed";
}

const statuses: ReadonlySet<unknown> = new Set(["completed", "partial", "failed", "stopped"]);

/** A line after the ending means that the child was taken up again. */
function endingOf(record: JsonRecord | undefined): Pick<TranscriptTask, "state" | "reason"> {
  const ending = record?.runEnding;
  if (!isRecord(ending) || !statuses.has(ending.status)) return {};
  return {
    // One of the four words, as just checked.
    state: ending.status as RunEnding["status"],
    ...(typeof ending.reason === "string" ? { reason: ending.reason } : {}),
  };
}

/** A plan begins a run, also one that did not get to its first words. */
function isPartOfRun({ type, runEnding }: JsonRecord): boolean {
  return type === "user" || type === "assistant" || type === "retinue-plan" || runEnding !== undefined;
}

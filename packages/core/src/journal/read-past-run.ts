import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readQuotedBands } from "@retinue/gate/batch-quote.ts";
import type { PastRun } from "../planning/predict-run.ts";

/** What a line reports about the run that it ends; undefined for every other line. */
export function readPastRun({
  subtype,
  runEnding,
  durationMs,
}: JsonRecord): (PastRun & { readonly status: string }) | undefined {
  if (subtype !== "turn_duration" || !isRecord(runEnding)) return undefined;
  const { status, usage, costUSD, receipt, quote } = runEnding;
  if (typeof status !== "string" || !isRecord(usage) || !isAmount(durationMs, maxMs)) return undefined;
  // What no run takes was not written by one, and would make nonsense of every quote.
  const amounts = tokenKinds.map((name) => usage[name] ?? 0);
  if (!amounts.every((tokens) => isAmount(tokens, maxTokens))) return undefined;
  if (costUSD !== undefined && costUSD !== null && !isAmount(costUSD, maxUsd)) return undefined;
  // Each was looked at.
  const count = (name: (typeof tokenKinds)[number]): number => (usage[name] ?? 0) as number;
  const model = isRecord(receipt) ? receipt["model"] : undefined;
  const quoted = readQuotedBands(quote);
  return {
    status,
    usage: {
      inputTokens: count("inputTokens"),
      outputTokens: count("outputTokens"),
      cacheReadTokens: count("cacheReadTokens"),
      cacheWriteTokens: count("cacheWriteTokens"),
    },
    durationMs,
    ...(typeof costUSD === "number" ? { costUsd: costUSD } : {}),
    ...(typeof model === "string" ? { model } : {}),
    ...(quoted === undefined ? {} : { quoted }),
  };
}

const tokenKinds = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const;

const maxTokens = 1e12;
const maxUsd = 1e6;
/** A year. */
const maxMs = 366 * 24 * 3_600_000;

function isAmount(value: unknown, most: number): value is number {
  return typeof value === "number" && value >= 0 && value <= most;
}

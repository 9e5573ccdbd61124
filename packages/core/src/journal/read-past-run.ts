import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readQuotedBands } from "@retinue/gate/batch-quote.ts";
import type { PastRun } from "../planning/predict-run.ts";

/** What a line says of the run that it ends; undefined for every other line. */
export function readPastRun({
  subtype,
  runEnding,
  durationMs,
}: JsonRecord): (PastRun & { readonly status: string }) | undefined {
  if (subtype !== "turn_duration" || !isRecord(runEnding)) return undefined;
  const { status, usage, costUSD, receipt, quote } = runEnding;
  if (typeof status !== "string" || !isRecord(usage) || typeof durationMs !== "number") return undefined;
  const count = (name: string): number => {
    const tokens = usage[name];
    return typeof tokens === "number" && tokens >= 0 ? tokens : 0;
  };
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

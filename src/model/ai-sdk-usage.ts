import type { StopReason } from "../conversation/stop-reason.ts";
import type { Usage } from "../conversation/usage.ts";
import { isRecord, type JsonRecord } from "../foundation/json-value.ts";

/** The counts of a `finish` part in any generation of the interface; undefined where the provider counted nothing. */
export function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { inputTokens, outputTokens } = usage;
  const input = isRecord(inputTokens) ? inputTokens : flatInput(usage);
  const output = count(isRecord(outputTokens) ? outputTokens["total"] : outputTokens);
  const total = count(input["total"]);
  const cacheReadTokens = count(input["cacheRead"]) ?? 0;
  const cacheWriteTokens = count(input["cacheWrite"]) ?? 0;
  const fresh = count(input["noCache"]);
  if (total === undefined && fresh === undefined && output === undefined) return undefined;
  const inputTokensLeft = fresh ?? Math.max(0, (total ?? 0) - cacheReadTokens - cacheWriteTokens);
  return { inputTokens: inputTokensLeft, outputTokens: output ?? 0, cacheReadTokens, cacheWriteTokens };
}

export type FinishReading =
  | { readonly type: "stopped"; readonly reason: StopReason }
  | { readonly type: "failed"; readonly code: "server-error" | "stream-cut" };

/** Why the model stopped, in our words. Some servers say `stop` also when they call tools. */
export function readFinishReason(finish: unknown, hasCalls: boolean): FinishReading {
  const raw = isRecord(finish) ? finish["raw"] : undefined;
  const unified = isRecord(finish) ? finish["unified"] : finish;
  if (raw === "model_context_window_exceeded") return { type: "stopped", reason: raw };
  switch (unified) {
    case "length":
      return { type: "stopped", reason: "max_tokens" };
    case "content-filter":
      return { type: "stopped", reason: "refusal" };
    case "error":
      return { type: "failed", code: "server-error" };
    case "interrupted":
      return { type: "failed", code: "stream-cut" };
    default:
      return { type: "stopped", reason: hasCalls ? "tool_use" : "end_turn" };
  }
}

/** Up to its second generation the interface had one number for all input. */
function flatInput(usage: JsonRecord): JsonRecord {
  return { total: usage["inputTokens"], cacheRead: usage["cachedInputTokens"] };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, value) : undefined;
}

import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { JsonSchema } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";

/** What one agent may take, as people write it in settings, definitions and calls. */
export interface AgentLimits {
  /** From its start to its end, without the time a person is asked or a place is waited for. */
  readonly seconds?: number | undefined;
  /** Tokens read and written, all kinds together. */
  readonly tokens?: number | undefined;
  /** US dollars. */
  readonly usd?: number | undefined;
  readonly toolCalls?: number | undefined;
  /** One tool call. */
  readonly toolSeconds?: number | undefined;
  /** Without any sign of life: reported after this time, stopped after twice of it. */
  readonly silenceSeconds?: number | undefined;
  /** Equal rounds of calls that fail or bring nothing new, after which the run ends. */
  readonly repeatedCalls?: number | undefined;
}

export const agentLimitKeys = [
  "seconds",
  "tokens",
  "usd",
  "toolCalls",
  "toolSeconds",
  "silenceSeconds",
  "repeatedCalls",
] as const satisfies readonly (keyof AgentLimits)[];

export type AgentLimitKey = (typeof agentLimitKeys)[number];

export type LimitsReading =
  | { readonly type: "limits"; readonly limits: AgentLimits }
  /** `at` is the key that cannot be read; absent when it is the whole. */
  | { readonly type: "unusable"; readonly at?: string; readonly reason: string };

/** Reads limits strictly: one that is not understood would not be kept. */
export function readAgentLimits(
  value: unknown,
  known: readonly AgentLimitKey[] = agentLimitKeys,
): LimitsReading {
  if (!isRecord(value)) return { type: "unusable", reason: `needs an object, but is ${quote(value)}` };
  const given = defined(value);
  for (const [key, written] of Object.entries(given)) {
    const reason = flawOf(key, written, known);
    if (reason !== undefined) return { type: "unusable", at: key, reason };
  }
  // Every key and value was checked just now.
  return { type: "limits", limits: given as AgentLimits };
}

const wholeKeys: ReadonlySet<string> = new Set<AgentLimitKey>(["tokens", "toolCalls", "repeatedCalls"]);

/** The model is informed of a repetition before it ends anything. */
const smallest: ReadonlyMap<string, number> = new Map([["repeatedCalls", 4]]);

/** The limits that there are for all agents of a session together. */
export const treeLimitKeys: readonly AgentLimitKey[] = ["seconds", "tokens", "usd", "toolCalls"];

/** What `readAgentLimits` takes. */
export function agentLimitsSchema(known: readonly AgentLimitKey[] = agentLimitKeys): JsonSchema {
  const properties = known.map((key) => [
    key,
    wholeKeys.has(key)
      ? { type: "integer", minimum: smallest.get(key) ?? 1, maximum: Number.MAX_SAFE_INTEGER }
      : { type: "number", exclusiveMinimum: 0 },
  ]);
  return { type: "object", properties: Object.fromEntries(properties), additionalProperties: false };
}

function flawOf(key: string, written: unknown, known: readonly AgentLimitKey[]): string | undefined {
  if (!known.some((name) => name === key)) {
    const nearest = nearestName(key, known);
    return `is not a limit; ${nearest === undefined ? `known are ${known.join(", ")}` : `did you mean ${nearest}?`}`;
  }
  const isWhole = wholeKeys.has(key);
  const isNumber = typeof written === "number" && Number.isFinite(written) && written > 0;
  const least = smallest.get(key) ?? 1;
  if (isNumber && (!isWhole || (Number.isSafeInteger(written) && written >= least))) return undefined;
  const expected = isWhole ? `a whole number from ${least}` : "a number above 0";
  return `needs ${expected}, but is ${quote(written)}`;
}

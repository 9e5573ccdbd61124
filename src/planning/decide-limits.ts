import type { AgentLimitKey, AgentLimits } from "../definitions/agent-limits.ts";
import type { RunLimits } from "./run-limits.ts";
import type { Decided } from "./run-plan.ts";

/** Limits from one place: settings, a definition, a call. */
export interface LimitSource {
  readonly limits: AgentLimits | undefined;
  /** The place, by the key that is asked for. */
  readonly from: string | ((key: AgentLimitKey) => string);
}

/** Where several places speak, the smallest number counts: nobody can widen what another has narrowed. Pure. */
export function decideLimits(sources: readonly LimitSource[]): RunLimits {
  const decided = (key: AgentLimitKey, factor = 1): Decided<number> | undefined =>
    smallest(sources, key, factor);
  return withoutAbsent({
    timeMs: decided("seconds", 1000),
    tokens: decided("tokens"),
    cost: decided("usd"),
    toolCalls: decided("toolCalls"),
    toolTimeMs: decided("toolSeconds", 1000),
    silenceMs: decided("silenceSeconds", 1000),
    repeatedCalls: decided("repeatedCalls"),
  });
}

function smallest(
  sources: readonly LimitSource[],
  key: AgentLimitKey,
  factor: number,
): Decided<number> | undefined {
  const said = sources.flatMap(({ limits, from }): Decided<number>[] => {
    const value = limits?.[key];
    if (value === undefined) return [];
    return [{ value: value * factor, from: typeof from === "string" ? from : from(key) }];
  });
  return said.reduce<Decided<number> | undefined>(
    (least, next) => (least === undefined || next.value < least.value ? next : least),
    undefined,
  );
}

function withoutAbsent(
  limits: {
    readonly [Key in keyof RunLimits]: RunLimits[Key] | undefined;
  },
): RunLimits {
  // Only entries that are there are kept, under their own keys.
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)) as RunLimits;
}

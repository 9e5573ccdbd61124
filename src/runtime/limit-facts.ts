import type { RunEnding } from "../conversation/run-event.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import type { LimitFacts } from "../planning/limit-plan.ts";
import { type LimitSettings, readLimitSettings } from "../planning/limit-settings.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import type { SessionSetup } from "./options/runtime-setup.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** When a silent agent in the background is stopped, unless the environment says otherwise. */
const defaultStallMs = 600_000;

/** Everything about limits that planning asks for; a setting that cannot be used ends the start. */
export function limitFacts(world: RuntimeContext, options: Pick<SessionSetup, "limits">): LimitFacts {
  const { settings } = world.discovered.settings;
  const { agentStallTimeoutMs } = readEnvironment(world.environment).options;
  const limits: LimitSettings = readLimitSettings(settings.plain.limits);
  return {
    settings: limits,
    settingsFrom: (name) => settings.sources.get(name)?.file,
    ...(options.limits === undefined ? {} : { session: options.limits }),
    background:
      agentStallTimeoutMs === undefined
        ? { stopMs: defaultStallMs, from: "the default" }
        : { stopMs: agentStallTimeoutMs, from: "CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS" },
  };
}

/** The turns of a plan over all runs of one prompt. What is shared with children is kept by the budget of the tree. */
export interface SessionLimits {
  /** What the next run may take, when the parts of the same prompt that ended before it took so much. */
  left(before: RunEnding | undefined): Pick<LoopInput, "maxTurns">;
  /** The limit that leaves nothing for another part of the same prompt. */
  reached(ending: RunEnding): "max_turns" | undefined;
  /** The ending, with a limit named as the caller set it. */
  explain(ending: RunEnding): RunEnding;
}

export function createLimits({ maxTurns }: Pick<RunPlan, "maxTurns">): SessionLimits {
  const limit = maxTurns?.value ?? Number.POSITIVE_INFINITY;
  return {
    left: (before) => ({ maxTurns: limit - (before?.totals.turns ?? 0) }),
    reached: (ending) => (ending.totals.turns >= limit ? "max_turns" : undefined),
    explain(ending) {
      if (ending.reason !== "max_turns" || maxTurns === undefined) return ending;
      return { ...ending, error: `The limit of ${turns(maxTurns.value)} was reached.` };
    },
  };
}

function turns(count: number): string {
  return count === 1 ? "1 turn" : `${count} turns`;
}

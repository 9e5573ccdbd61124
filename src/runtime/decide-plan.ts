import type { RunEnding } from "../conversation/run-event.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import type { PolicyRule } from "../permissions/decide.ts";
import { type LimitFacts, type LimitSettings, readLimitSettings } from "../planning/limit-plan.ts";
import { planSession, type SessionFacts } from "../planning/plan-session.ts";
import type { RunPlan } from "../planning/plan-tools.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { policyFacts, ruleNotes } from "./session-rules.ts";

/** What opening a session found out for its plan. */
type FactsFound = Pick<
  SessionFacts,
  | "definition"
  | "model"
  | "canSearch"
  | "available"
  | "servers"
  | "serverInstructions"
  | "system"
  | "memory"
  | "skills"
  | "workingDirectories"
  | "notes"
>;

/** The plan of the main agent, or the reason why there is none, as a error. */
export function decidePlan(
  world: RuntimeContext,
  options: SessionSetup,
  sessionId: string,
  found: FactsFound & {
    readonly outputRules: readonly PolicyRule[];
    readonly teamRules?: readonly PolicyRule[];
    readonly limits: LimitFacts;
  },
): RunPlan {
  const disallowedTools = [...world.disallowedTools, ...(options.disallowedTools ?? [])];
  const rights = policyFacts(world, { ...options, disallowedTools });
  const planned = planSession(
    { ...options, sessionId, agentId: "main" },
    {
      ...rights,
      rules: { ...rights.rules, deny: [...rights.rules.deny, ...(found.teamRules ?? [])] },
      ...found,
      notes: [...(found.notes ?? []), ...ruleNotes(rights.rules)],
    },
  );
  if (planned.type === "planned") return planned.plan;
  const { reason, advice, code = "plan-refused" } = planned;
  throw new RetinueError(code, reason, advice === undefined ? {} : { advice });
}

/** When a silent agent in the background is stopped, unless the environment says otherwise. */
const defaultStallMs = 600_000;

/** Everything about limits that planning asks for; a setting that cannot be used ends the start. */
export function limitFacts(world: RuntimeContext, options: Pick<SessionSetup, "limits">): LimitFacts {
  const { settings } = world.discovered.settings;
  const { agentStallTimeoutMs } = world.variables;
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

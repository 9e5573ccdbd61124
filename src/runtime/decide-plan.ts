import { RetinueError } from "../foundation/retinue-error.ts";
import type { PolicyRule } from "../permissions/decide.ts";
import { planSession, type SessionFacts } from "../planning/plan-session.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { limitFacts } from "./limit-facts.ts";
import type { SessionSetup } from "./options/runtime-setup.ts";
import { policyFacts } from "./policy-facts.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { ruleNotes } from "./session-rules.ts";

/** What opening a session found out for its plan. */
export type FactsFound = Pick<
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
  found: FactsFound & { readonly outputRules: readonly PolicyRule[] },
): RunPlan {
  const disallowedTools = [...world.disallowedTools, ...(options.disallowedTools ?? [])];
  const rights = policyFacts(world, { ...options, disallowedTools });
  const planned = planSession(
    { ...options, sessionId, agentId: "main" },
    {
      ...rights,
      ...found,
      notes: [...(found.notes ?? []), ...ruleNotes(rights.rules)],
      limits: limitFacts(world, options),
    },
  );
  if (planned.type === "planned") return planned.plan;
  const { reason, advice, code = "plan-refused" } = planned;
  throw new RetinueError(code, reason, advice === undefined ? {} : { advice });
}

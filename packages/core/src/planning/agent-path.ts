import type { AskingAgent } from "@retinue/gate/approver.ts";
import type { ChildPlan } from "./plan-run.ts";
import type { RunPlan } from "./plan-tools.ts";

/** From the main agent to the one of the plan; a teammate is known by its name in the team. */
export function agentPath(plan: RunPlan, main: AskingAgent): readonly AskingAgent[] {
  if (plan.agent.id === main.id) return [main];
  const team = "task" in plan ? (plan as ChildPlan).task.team : undefined;
  return [main, team === undefined ? plan.agent : { ...plan.agent, name: team.member }];
}

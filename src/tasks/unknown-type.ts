import type { Model } from "../model/model.ts";
import type { ChosenModel } from "../model/select-subagent-model.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { SpawnRule } from "../tools/grants/tool-grants.ts";
import { createNeedEstimator } from "./budget/need-estimator.ts";
import type { TreeBudget } from "./budget/tree-budget.ts";

export function unknownType(
  request: SpawnRequest,
  found: { readonly nearest?: string; readonly available: readonly string[] },
  rule: SpawnRule,
): string {
  const available = found.available.filter((name) => rule === "any" || isNamed(rule, name));
  const isNear = found.nearest !== undefined && available.includes(found.nearest);
  const near = isNear ? ` Did you mean ${found.nearest}?` : "";
  return `There is no agent ${JSON.stringify(request.agentType)}.${near} Available: ${available.join(", ")}.`;
}

/** The name of a plugin's agent may be written without its plugin. */
function isNamed(rule: Exclude<SpawnRule, "any">, id: string): boolean {
  return rule !== "none" && rule.only.some((name) => name === id || id.endsWith(`:${name}`));
}

/** A child whose very first call cannot be paid for is not started. */
export function refuseUnpaid(
  { limits, system, task }: ChildPlan,
  { facts }: Model,
  budget: TreeBudget | undefined,
): string | undefined {
  const account = budget?.agent(limits);
  if (account?.isLimited !== true) return undefined;
  const messages = [{ role: "user" as const, content: task.prompt }];
  const need = createNeedEstimator(facts).needOf({ system, tools: [], messages });
  return account.refusal(need)?.error;
}

/** A resumed child keeps its model unless the call names another. */
export function withModel(request: SpawnRequest, model: ChosenModel | undefined): SpawnRequest {
  if (request.model !== undefined || model === undefined) return request;
  return { ...request, model: model.provider === undefined ? model.id : `${model.provider}/${model.id}` };
}

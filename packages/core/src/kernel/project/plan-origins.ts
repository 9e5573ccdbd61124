import {
  type AgentDefinition,
  type DefinitionKey,
  definitionKeys,
  fieldOf,
} from "@retinue/config/agents/agent-definition.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";

export type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
export { describeRule } from "@retinue/gate/decide.ts";
export type {
  AgentPlan as RunPlan,
  ChildPlan,
  Decided,
  Overridden,
  RunLimits,
} from "../../planning/agent-plan.ts";
export { treeLimitsOf } from "../../planning/plan-limits.ts";
export { readAgentPlan } from "../../planning/read-agent-plan.ts";
export {
  type AcceptedRight,
  acceptableRights,
  parseAcceptedRights,
} from "../../planning/within-own-rights.ts";

/** Where a value of a plan came from; with its place where that is a file. */
export interface PlanOrigin {
  /** `the definition`, `the call`, `the parent`, `the default`, a settings file, or what else said so. */
  readonly from: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

/** The origin of every field of a plan, by its name in a definition. */
export function planOrigins(
  plan: ChildPlan,
  definition: AgentDefinition,
): Readonly<Record<string, PlanOrigin>> {
  const own = (key: DefinitionKey): PlanOrigin => fromDefinition(definition, key);
  const placed = (from: string, key: DefinitionKey): PlanOrigin =>
    from.includes("definition") ? { ...own(key), from } : { from };
  const isOwn = (key: DefinitionKey): boolean => definition[key] !== undefined;
  const { task, limits = {}, treeLimits = {} } = plan;
  const entries: (readonly [string, PlanOrigin])[] = [
    ["prompt", { from: "the definition", ...placeOf(definition) }],
    ["model", placed(plan.model.from, "model")],
    ["tools", isOwn("tools") ? own("tools") : { from: "the parent" }],
    ["permissionMode", placed(plan.modeFrom, "permissionMode")],
    ...(plan.maxTurns === undefined ? [] : [["maxTurns", placed(plan.maxTurns.from, "maxTurns")] as const]),
    ...(plan.effort === undefined ? [] : [["effort", placed(plan.effort.from, "effort")] as const]),
    ["background", switchOrigin(task.background, definition.background === true, own("background"))],
    ...(task.isolation === undefined
      ? []
      : [["isolation", switchOrigin(true, isOwn("isolation"), own("isolation"))] as const]),
    ...(plan.cwd === undefined ? [] : [["cwd", placed(plan.cwd.from, "cwd")] as const]),
    ...Object.entries(plan.env ?? {}).map(
      ([name, { from }]) => [`env.${name}`, placed(from, "env")] as const,
    ),
    ...ownOnly.flatMap((key) => (isOwn(key) ? [[key, own(key)] as const] : [])),
    ["directory", { from: task.isolation === undefined ? "the parent" : "a worktree of its own" }],
    ...Object.entries(limits).map(([key, { from }]) => [`limits.${key}`, placed(from, "limits")] as const),
    ...Object.entries(treeLimits).map(([key, { from }]) => [`treeLimits.${key}`, { from }] as const),
  ];
  return Object.fromEntries(entries);
}

/** Fields that nothing but a definition can set. */
const ownOnly = definitionKeys.filter((key) => fieldOf(key).decidedElsewhere !== true);

function switchOrigin(isOn: boolean, isOwn: boolean, own: PlanOrigin): PlanOrigin {
  if (!isOn) return { from: "the default" };
  return isOwn ? own : { from: "the call" };
}

function fromDefinition(definition: AgentDefinition, key: DefinitionKey): PlanOrigin {
  const place = definition.written[key]?.place;
  return {
    from: "the definition",
    ...placeOf(definition),
    ...(place === undefined ? {} : { line: place.line, column: place.column }),
  };
}

/** The file alone; the body of a file has no field of its own. */
function placeOf({ source }: AgentDefinition): Pick<PlanOrigin, "file"> {
  return source.file === undefined ? {} : { file: source.file };
}

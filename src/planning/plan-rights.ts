import type { ChosenModel } from "../model/select-subagent-model.ts";
import { type ChildWishes, childPolicy } from "../permissions/child-policy.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { PermissionPolicy } from "../permissions/permission-policy.ts";
import type { AvailableTool } from "../tools/grants/match-tools.ts";
import { callMode, keptGrant } from "./earlier-run.ts";
import { memoryFacts } from "./memory-facts.ts";
import type { ChildPlan, SpawnFacts } from "./plan-run.ts";
import { planTools } from "./plan-tools.ts";
import type { RunPlan } from "./run-plan.ts";
import { refusedTools, type SearchFacts } from "./search-facts.ts";
import type { SkillOfSpawn, SpawnRequest } from "./spawn-request.ts";
import { handInPlanTool, memberTools } from "./team-membership.ts";

export interface PlannedRights {
  readonly type: "granted";
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
  readonly tools: ChildPlan["tools"];
  readonly available: readonly AvailableTool[];
  readonly memory: Pick<RunPlan, "memory">;
  readonly serverNotes: readonly string[];
  readonly notes: readonly string[];
}

/** The tools it gets and the policy they are used under; never wider than what its parent has. */
export function planRights(
  request: SpawnRequest,
  facts: SpawnFacts,
  placed: { readonly background: boolean; readonly model: ChosenModel },
): PlannedRights | { readonly type: "refused"; readonly reason: string } {
  const { definition, parent } = facts;
  const { model } = placed;
  // Where a host answers for it, a child in the background is like one that somebody waits for.
  const background = placed.background && facts.backgroundAttended !== true;
  const memory = memoryFacts(definition, facts.memory);
  const wishes: ChildWishes = {
    ...callMode(request, facts.earlier),
    definition: { mode: definition.permissionMode, scope: definition.source.scope },
    projectMayWiden: facts.trusted,
    background,
  };
  const search: SearchFacts = {
    policy: withSkill(childPolicy(parent.policy, wishes), request.skill),
    model: model.id,
    canSearch: facts.canSearch?.(model) !== false,
  };
  const planned = planTools({
    ...facts,
    definition: memory.definition,
    skillDeny: request.skill?.deny ?? [],
    refused: refusedTools(search),
    background,
    ...(request.team === undefined ? {} : { forTeam: teamTools(search.policy.mode, parent.policy.mode) }),
  });
  const grant = keptGrant(planned.grant, request, facts.earlier);
  if (grant.type === "refused") return { type: "refused", reason: grant.reason };
  const { tools } = grant;
  const policy = childPolicy(parent.policy, {
    ...wishes,
    tools: { anchor: parent.directory, tools, ...memory.scope, ...grant.exclusions },
  });
  return {
    type: "granted",
    policy,
    modeFrom: modeOrigin(policy.mode, parent.policy.mode, wishes),
    tools,
    available: planned.available,
    memory: memory.plan,
    serverNotes: planned.notes,
    // The parent reads these beside the result; mere remarks are shown where files are checked.
    notes: grant.notes.flatMap(({ severity, message }) => (severity === "note" ? [] : [message])),
  };
}

function teamTools(mode: PermissionMode, parent: PermissionMode): readonly string[] {
  return mode === "plan" && parent !== "plan" ? [...memberTools, handInPlanTool] : memberTools;
}

/** A skill's own rules are added to the parent's; deny and ask rules of the parent go before what it allows. */
export function withSkill(policy: PermissionPolicy, skill: SkillOfSpawn | undefined): PermissionPolicy {
  if (skill === undefined) return policy;
  return { ...policy, allow: [...policy.allow, ...skill.allow], deny: [...policy.deny, ...skill.deny] };
}

function modeOrigin(mode: PermissionMode, parent: PermissionMode, { call }: ChildWishes): string {
  if (mode === parent) return "the parent";
  return call?.mode === mode ? "the call" : "the definition";
}

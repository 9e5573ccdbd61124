import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import { childPolicy } from "../../permissions/child-policy.ts";
import type { RunPlan } from "../../planning/run-plan.ts";
import { refusedTools } from "../../planning/search-facts.ts";
import { selectChildModel } from "../../planning/select-child-model.ts";
import { startableAgents } from "../../planning/startable-agents.ts";
import type { SessionSpawnFacts } from "./decide-child.ts";

/** The agents that a model is shown: those it can start, with the tools that each would get. */
export function listedAgents(
  definitions: readonly AgentDefinition[],
  parent: RunPlan,
  facts: SessionSpawnFacts,
): readonly AgentDefinition[] {
  const refused = (definition: AgentDefinition): ReadonlyMap<string, string> => {
    const { model } = selectChildModel({}, { ...facts, definition });
    const policy = childPolicy(parent.policy, {
      definition: { mode: definition.permissionMode, scope: definition.source.scope },
      projectMayWiden: facts.trusted,
    });
    return refusedTools({ policy, model: model.id, canSearch: facts.canSearch?.(model) !== false });
  };
  return startableAgents(definitions, { parent, available: facts.available, refused });
}

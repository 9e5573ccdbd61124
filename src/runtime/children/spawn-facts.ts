import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import { aliasTable } from "../../model/alias-table.ts";
import { lookUpModel } from "../../model/look-up-model.ts";
import type { Model, ModelFacts } from "../../model/model.ts";
import { findOverride, readModelOverrides } from "../../model/read-model-overrides.ts";
import type { ChosenModel } from "../../model/select-subagent-model.ts";
import { childPolicy } from "../../permissions/child-policy.ts";
import type { LimitFacts } from "../../planning/limit-plan.ts";
import type { RunPlan } from "../../planning/run-plan.ts";
import { refusedTools } from "../../planning/search-facts.ts";
import { selectChildModel } from "../../planning/select-child-model.ts";
import { startableAgents } from "../../planning/startable-agents.ts";
import { readEnvironment } from "../../settings/read-environment.ts";
import type { AgentServices } from "../agent/equip-agent.ts";
import { isServed, modelLimits } from "../choose-model.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { SessionSpawnFacts } from "./decide-child.ts";
import { programFunctions } from "./program-functions.ts";

/** Everything that planning a child asks about the session. */
export function spawnFacts({
  services,
  parent,
  limitFacts,
}: {
  readonly services: Pick<AgentServices, "world" | "tools" | "servers">;
  readonly parent: { readonly model: Model; readonly chosenModel: ChosenModel };
  readonly limitFacts: LimitFacts;
}): SessionSpawnFacts {
  const { world, tools, servers } = services;
  const options = readEnvironment(world.environment).options;
  return {
    aliases: aliasTable({ environment: world.environment }),
    modelLimits: modelLimits(world),
    ...(options.subagentModel === undefined ? {} : { subagentModel: options.subagentModel }),
    subagentModelForced: options.subagentModelForced === true,
    available: tools.available,
    servers: servers.servers,
    functions: programFunctions(world),
    trusted: world.trusted,
    backgroundAllowed: options.backgroundTasksDisabled !== true,
    ...(world.live?.attendsBackground === true ? { backgroundAttended: true } : {}),
    parentModel: parent.chosenModel,
    limits: limitFacts,
    isPriced: (chosen) => knownFacts(chosen, world, parent).price !== undefined,
    canSearch: (chosen) => knownFacts(chosen, world, parent).supportsServerTools,
    isServed: (chosen) => isServed(world, chosen),
  };
}

/** Without asking any provider: as far as the catalog and settings know it. */
function knownFacts(
  chosen: ChosenModel,
  world: RuntimeContext,
  parent: { readonly model: Model; readonly chosenModel: ChosenModel },
): Pick<ModelFacts, "price" | "supportsServerTools"> {
  const isParents = chosen.id === parent.chosenModel.id && chosen.provider === parent.chosenModel.provider;
  if (isParents || world.model !== undefined) return parent.model.facts;
  const overrides = readModelOverrides(world.discovered.settings.settings.plain);
  if (chosen.provider !== undefined && chosen.provider !== "anthropic")
    return { ...findOverride(overrides, chosen), supportsServerTools: false };
  return lookUpModel(chosen.id, overrides.facts).facts;
}

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

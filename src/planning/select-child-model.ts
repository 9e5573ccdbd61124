import { type ModelSelection, selectSubagentModel } from "../model/select-subagent-model.ts";
import type { SpawnFacts } from "./plan-run.ts";
import type { SpawnRequest } from "./spawn-request.ts";

/** Which model a child runs on, and where it comes from. */
type ChildModel = ModelSelection & { readonly from: string };

export type ChildModelFacts = Pick<
  SpawnFacts,
  "definition" | "subagentModel" | "subagentModelForced" | "parentModel" | "aliases" | "isServed"
>;

export function selectChildModel(request: Pick<SpawnRequest, "model">, facts: ChildModelFacts): ChildModel {
  const selection = selectSubagentModel({
    call: request.model,
    definition: facts.definition.model,
    variable: facts.subagentModel,
    isForced: facts.subagentModelForced === true,
    parent: facts.parentModel,
    aliases: facts.aliases,
  });
  return servedSelection(selection, facts);
}

/** A model no one is configured to serve gives way to the parent's, where that is served by more than the offline one. */
function servedSelection(selection: ModelSelection, { isServed, parentModel }: ChildModelFacts): ChildModel {
  const { model, written, origin } = selection;
  if (isServed === undefined || isServed(model) || !isServed(parentModel))
    return { ...selection, from: origin };
  return {
    ...selection,
    model: parentModel,
    from: `parent, because no provider is configured for ${model.id}`,
    overrode: [{ origin, written }, ...selection.overrode],
  };
}

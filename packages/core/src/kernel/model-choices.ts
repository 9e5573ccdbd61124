export { aliasTable } from "@retinue/config/models/select-subagent-model.ts";

import type { TreeFacts } from "./agent-tree.ts";

/** The models that a person is offered: the planned one, and the newest of each family. */
export function modelChoices({ plan, model }: Pick<TreeFacts, "plan" | "model">) {
  const families = ["sonnet", "opus", "haiku"].map((value) => ({
    value,
    displayName: value.charAt(0).toUpperCase() + value.slice(1),
    description: `The current ${value} model`,
  }));
  const planned = {
    value: "default",
    resolvedModel: model.id,
    displayName: "Default",
    description: `${plan.model.value}, from ${plan.model.from}`,
  };
  return [planned, ...families];
}

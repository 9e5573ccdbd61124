import { type JsonSchema, schemas } from "@retinue/base/foundation/json-schema.ts";
import type { WorkflowMeta, WorkflowPhase } from "./workflow-meta.ts";

const count = { type: "integer", minimum: 1 };

const phaseFields: Readonly<Record<keyof WorkflowPhase, JsonSchema>> = {
  title: { description: "The name of the phase.", type: "string" },
  detail: { description: "What happens in it.", type: "string" },
  model: { description: "The model of its steps.", type: "string" },
  maxBudgetUsd: { description: "US dollars for its steps together.", type: "number", exclusiveMinimum: 0 },
  maxTokens: { description: "Tokens for its steps together.", ...count },
  maxAgents: { description: "How many agents it may start.", ...count },
};

const metaFields: Readonly<Record<keyof WorkflowMeta, JsonSchema>> = {
  name: { description: "The name of the workflow.", ...schemas.text },
  description: { description: "What it does; a model decides by this text.", ...schemas.text },
  whenToUse: { description: "More about when to use it.", type: "string" },
  phases: {
    description: "Its phases, in order.",
    type: "array",
    items: { type: "object", properties: phaseFields, required: ["title"] },
  },
};

/** The value of `meta` in the script of a workflow. */
export function workflowMetaSchema(): JsonSchema {
  return { type: "object", properties: metaFields, required: ["name", "description"] };
}

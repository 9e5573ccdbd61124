import type { JsonSchema } from "@retinue/base/foundation/json-schema.ts";
import { parsePermissionMode, permissionModes } from "@retinue/base/foundation/option-words.ts";

const text = { type: "string", minLength: 1 };
const names = { type: "array", items: text, minItems: 1 };
const count = { type: "integer", minimum: 1 };
const modes = [...permissionModes, "manual"].filter((mode) => parsePermissionMode(mode) !== undefined);

/** What a judge may have. */
export const judgeFields = {
  question: { description: "What the judge is asked about the answer.", ...text },
  agent: { description: "The agent that judges.", ...text },
  model: { description: "The model that judges.", ...text },
  pass: { description: "The score from which on it passes.", type: "number", minimum: 0, maximum: 1 },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** What a task may have. */
export const taskFields = {
  name: { description: "Shown in the table; the beginning of the prompt without it.", ...text },
  prompt: { description: "What the agent is asked.", type: "string", pattern: "\\S" },
  check: { description: "A command that gets the answer on stdin; exit code 0 passes.", ...text },
  schema: { description: "The JSON Schema of the result.", type: "object" },
  judge: {
    description: "A question to an agent about the answer.",
    anyOf: [
      { type: "string" },
      { type: "object", properties: judgeFields, required: ["question"], additionalProperties: false },
    ],
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** What a file of evaluations may have. */
export const evalFields = {
  tasks: {
    description: "What is tried, and how it is scored.",
    type: "array",
    minItems: 1,
    items: {
      type: "object",
      properties: taskFields,
      required: ["prompt"],
      anyOf: ["check", "schema", "judge"].map((key) => ({ required: [key] })),
      additionalProperties: false,
    },
  },
  definitions: { description: "Agents to try; `main` is the one without a definition.", ...names },
  models: { description: "Models to try.", ...names },
  repetitions: { description: "How often each is tried.", ...count },
  concurrency: { description: "How many runs work at a time.", ...count },
  budgetUsd: { description: "US dollars for everything together.", type: "number", exclusiveMinimum: 0 },
  maxTurns: { description: "The most turns of a run.", ...count },
  permissionMode: { description: "The permission mode of each run.", enum: modes },
  allowedTools: { description: "Rules that allow calls.", ...names },
  workspace: { description: "A folder of which each run gets a copy.", ...text },
} as const satisfies Readonly<Record<string, JsonSchema>>;

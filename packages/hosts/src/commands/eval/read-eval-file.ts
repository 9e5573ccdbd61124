import { createHash } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { JsonSchema } from "@retinue/base/foundation/json-schema.ts";
import {
  type PermissionMode,
  parsePermissionMode,
  permissionModes,
} from "@retinue/base/foundation/option-words.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { load } from "js-yaml";

/** How an answer is scored: by a command, by a schema, by an agent. All that are given must pass. */
export interface EvalScoring {
  /** A shell command that gets the answer on stdin; exit code 0 passes, and a last line from 0 to 1 is the score. */
  readonly check?: string;
  /** JSON Schema that the agent must hand in a result for. */
  readonly schema?: JsonRecord;
  readonly judge?: {
    readonly question: string;
    readonly agent?: string;
    readonly model?: string;
    /** The score from which on it passes. */
    readonly pass: number;
  };
}

export interface EvalTask extends EvalScoring {
  readonly name: string;
  readonly prompt: string;
}

/** A table of runs: every task with every definition and model, several times. */
export interface EvalPlan {
  readonly tasks: readonly EvalTask[];
  /** Names of agents; `main` is the one without a definition. */
  readonly definitions: readonly string[];
  /** Models as `--model` takes them; undefined is the usual one. */
  readonly models: readonly (string | undefined)[];
  readonly repetitions: number;
  readonly concurrency: number;
  /** For everything together; absent: no limit. */
  readonly budgetUsd?: number;
  readonly maxTurns?: number;
  readonly permissionMode?: PermissionMode;
  readonly allowedTools?: readonly string[];
  /** A folder of which each run gets a copy; absent: all runs work in the current folder. */
  readonly workspace?: string;
}

/** One run of the table. */
export interface EvalCell {
  readonly task: EvalTask;
  readonly definition: string;
  readonly model: string | undefined;
  readonly repetition: number;
  /** By what is run and how it is scored, so that a changed task is run again. */
  readonly key: string;
}

export const mainDefinition = "main";

/** Reads YAML or JSON; throws a RetinueError that names the file, the field and what is expected there. */
export function readEvalFile(text: string, file: string): EvalPlan {
  const fail = (at: string, expected: string): never => {
    throw new RetinueError("invalid-eval", `${file}: ${at} must be ${expected}.`, {
      advice: "docs/eval.md shows every field.",
    });
  };
  const value = parse(text, file);
  if (!isRecord(value)) return fail("the file", "an object with tasks");
  refuseUnknown(value, ["$schema", ...Object.keys(evalFields)], { at: "the file", fail });
  const { tasks, permissionMode } = value;
  if (!Array.isArray(tasks) || tasks.length === 0) return fail("tasks", "a list with at least one task");
  const read = tasks.map((task: unknown, index) => readTask(task, `tasks[${index}]`, fail));
  const names = new Set(read.map(({ name }) => name));
  if (names.size < read.length) return fail("tasks", "tasks with names of their own");
  const mode = typeof permissionMode === "string" ? parsePermissionMode(permissionMode) : undefined;
  if (permissionMode !== undefined && mode === undefined)
    return fail("permissionMode", `one of ${permissionModes.join(", ")}`);
  const budgetUsd = number(value, "budgetUsd", fail);
  const maxTurns = number(value, "maxTurns", fail);
  const allowedTools = texts(value, "allowedTools", fail);
  const workspace = text1(value, "workspace", fail);
  return {
    tasks: read,
    definitions: texts(value, "definitions", fail) ?? [mainDefinition],
    models: texts(value, "models", fail) ?? [undefined],
    repetitions: number(value, "repetitions", fail) ?? 1,
    concurrency: number(value, "concurrency", fail) ?? 1,
    budgetUsd,
    maxTurns,
    permissionMode: mode,
    allowedTools,
    workspace,
  };
}

export function cellsOf(plan: EvalPlan): readonly EvalCell[] {
  return plan.tasks.flatMap((task) =>
    plan.definitions.flatMap((definition) =>
      plan.models.flatMap((model) =>
        Array.from({ length: plan.repetitions }, (_, index) => {
          const { maxTurns, permissionMode, allowedTools, workspace } = plan;
          const run = { task, definition, model, repetition: index + 1 };
          const whole = JSON.stringify([run, maxTurns, permissionMode, allowedTools, workspace]);
          return { ...run, key: createHash("sha256").update(whole).digest("hex").slice(0, 16) };
        }),
      ),
    ),
  );
}

type Fail = (at: string, expected: string) => never;

function parse(text: string, file: string): unknown {
  try {
    return load(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new RetinueError("invalid-eval", `${file} is neither YAML nor JSON: ${why}`);
  }
}

function refuseUnknown(
  value: JsonRecord,
  known: readonly string[],
  { at, fail }: { readonly at: string; readonly fail: Fail },
): void {
  const [unknown] = Object.keys(value).filter((key) => !known.includes(key));
  const offered = known.filter((key) => key !== "$schema");
  if (unknown !== undefined)
    fail(`${at} has the key ${JSON.stringify(unknown)}, which`, `one of ${offered.join(", ")}`);
}

function readTask(value: unknown, at: string, fail: Fail): EvalTask {
  if (!isRecord(value)) return fail(at, "an object with prompt");
  refuseUnknown(value, Object.keys(taskFields), { at, fail });
  const { prompt, schema } = value;
  if (typeof prompt !== "string" || prompt.trim() === "") return fail(`${at}.prompt`, "a string");
  const inTask: Fail = (key, expected) => fail(`${at}.${key}`, expected);
  const check = text1(value, "check", inTask);
  const judge = value.judge === undefined ? undefined : readJudge(value.judge, inTask);
  if (schema !== undefined && !isRecord(schema)) return inTask("schema", "a JSON Schema");
  if (check === undefined && schema === undefined && judge === undefined)
    return fail(at, "scored by check, schema or judge");
  return {
    name: text1(value, "name", inTask) ?? prompt.trim().slice(0, 40),
    prompt,
    check,
    ...(isRecord(schema) ? { schema } : {}),
    judge,
  };
}

function readJudge(value: unknown, fail: Fail): NonNullable<EvalTask["judge"]> {
  if (typeof value === "string") return { question: value, pass: defaultPass };
  if (!isRecord(value)) return fail("judge", "a question, or an object with question");
  refuseUnknown(value, Object.keys(judgeFields), { at: "judge", fail });
  const question = text1(value, "question", fail) ?? fail("judge.question", "a string");
  const agent = text1(value, "agent", fail);
  const model = text1(value, "model", fail);
  const { pass = defaultPass } = value;
  if (typeof pass !== "number" || pass < 0 || pass > 1) return fail("judge.pass", "a number from 0 to 1");
  return {
    question,
    pass,
    agent,
    model,
  };
}

const defaultPass = 0.5;

function number(value: JsonRecord, key: string, fail: Fail): number | undefined {
  const found = value[key];
  if (found === undefined) return undefined;
  const isWhole = key !== "budgetUsd";
  if (typeof found !== "number" || !(found > 0) || (isWhole && !Number.isInteger(found)))
    return fail(key, isWhole ? "a whole number above 0" : "a number above 0");
  return found;
}

function text1(value: JsonRecord, key: string, fail: Fail): string | undefined {
  const found = value[key];
  if (found === undefined) return undefined;
  return typeof found === "string" && found !== "" ? found : fail(key, "a string");
}

function texts(value: JsonRecord, key: string, fail: Fail): readonly string[] | undefined {
  const found = value[key];
  if (found === undefined) return undefined;
  const isList =
    Array.isArray(found) &&
    found.length > 0 &&
    found.every((entry) => typeof entry === "string" && entry !== "");
  return isList ? (found as readonly string[]) : fail(key, "a list of names");
}

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

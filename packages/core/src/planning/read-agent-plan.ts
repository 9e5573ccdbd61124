import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { refuseVariable } from "@retinue/config/agents/own-variables.ts";
import {
  backgroundRights,
  type PermissionMode,
  parsePermissionMode,
} from "@retinue/gate/permission-policy.ts";
import type { AgentPlan, ChildPlan } from "./agent-plan.ts";

export type PlanReading<Plan = AgentPlan> =
  | { readonly type: "plan"; readonly plan: Plan }
  /** `at` names the field, with dots. */
  | { readonly type: "invalid"; readonly at: string; readonly expected: string; readonly found: string };

type Check = readonly [at: string, expected: string, test: (value: unknown) => boolean];

const isText = (value: unknown): boolean => typeof value === "string";
const isFilled = (value: unknown): boolean => typeof value === "string" && value !== "";
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isAbsolute = (value: unknown): boolean =>
  typeof value === "string" && /^(\/|[A-Za-z]:[\\/])/.test(value);
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const areNamed = (value: unknown): boolean =>
  Array.isArray(value) && value.every((entry) => isRecord(entry) && isFilled(entry["name"]));
const areRules = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((entry) => isRecord(entry) && isRecord(entry["rule"]) && isRecord(entry["rule"]["specifier"]));

/** What a plan must have before it is carried out: a field that is missing or of another type would be an unchecked right. */
const checks: readonly Check[] = [
  ["sessionId", "a session id", isFilled],
  ["agent.id", "an agent id", isFilled],
  ["agent.name", "the name of an agent", isFilled],
  ["model.value", "the id of a model", isFilled],
  ["chosenModel.id", "the id of a model", isFilled],
  ["tools", "a list of tools with names", areNamed],
  [
    "spawn",
    '"none" or the names of agents',
    (value) => value === "none" || (isRecord(value) && areTexts(value["only"])),
  ],
  ["policy.mode", "a permission mode", isMode],
  ["policy.allow", "a list of rules", areRules],
  ["policy.ask", "a list of rules", areRules],
  ["policy.deny", "a list of rules", areRules],
  ["policy.workingDirectories", "a list of folders", areTexts],
  ["policy.home", "an absolute path", isAbsolute],
  ["system", "a list of strings (the plan of a transcript has only their hashes)", areTexts],
  ["directory", "an absolute path", isAbsolute],
  ["sessionDirectory", "an absolute path", isAbsolute],
  ["notes", "a list of strings", areTexts],
  ["definition.name", "the name of an agent", isFilled],
  ["definition.source.scope", "a scope", isFilled],
  ["task.agentType", "the name of an agent", isFilled],
  ["task.description", "a string", isText],
  ["task.prompt", "a string", isText],
  ["task.background", "true or false", isFlag],
  ["task.parentId", "an agent id", isFilled],
  ["task.resumed", "true or false", isFlag],
  ["task.forksContext", "true or false", isFlag],
];

const isWhole = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;
const isPositive = (value: unknown): boolean => typeof value === "number" && value > 0;
const areFunctions = (value: unknown): boolean =>
  areNamed(value) && (value as readonly JsonRecord[]).every(({ kind }) => isFilled(kind));
const areBackgroundRights = (value: unknown): boolean =>
  Array.isArray(value) && value.every((entry) => backgroundRights.includes(entry));
const areChecks = (value: unknown): boolean =>
  Array.isArray(value) && value.every((entry) => isRecord(entry) && isFilled(entry["run"]));
const areWords = (value: unknown): boolean => areTexts(value) && (value as readonly string[]).length > 0;
const areVariables = (value: unknown): boolean =>
  isRecord(value) &&
  Object.entries(value).every(
    ([name, entry]) =>
      refuseVariable(name, "person") === undefined && isRecord(entry) && isText(entry["value"]),
  );
const limits = ["timeMs", "tokens", "costUsd", "toolCalls", "toolTimeMs", "silenceMs", "repeatedCalls"];

/** What may be missing, but must not be of another type: a limit that cannot be read would not be kept. */
const optionalChecks: readonly Check[] = [
  ["cwd", "an object with a value", isRecord],
  ["cwd.value", "an absolute path", isAbsolute],
  ["env", "variables with values, none that steers programs", areVariables],
  ["policy.background", "true or false", isFlag],
  ["policy.backgroundKeeps", 'a list of "mcpTools" and "questions"', areBackgroundRights],
  ["functions", "a list of functions with kind and name", areFunctions],
  ["loadedTools", "a list of names of tools", areTexts],
  ["nesting", "an object", isRecord],
  ["nesting.depth.value", "a whole number from 1", isWhole],
  ["nesting.agents.value", "a whole number from 1", isWhole],
  ["task.ancestors", "a list of agents with names", areNamed],
  ["runner", "an object", isRecord],
  ["runner.name", "a name", isFilled],
  ["runner.command", "a list of words", areWords],
  ["runner.env", "a list of names of variables", areTexts],
  ["verify", "an object with checks", isRecord],
  ["verify.checks", "a list of checks with a command each", areChecks],
  ["maxTurns", "an object with a value", isRecord],
  ["maxTurns.value", "a whole number from 1", isWhole],
  ...["limits", "treeLimits"].flatMap((key): readonly Check[] => [
    [key, "an object", isRecord],
    ...limits.flatMap((name): readonly Check[] => [
      [`${key}.${name}`, "an object with a value", isRecord],
      [`${key}.${name}.value`, "a number above 0", isPositive],
    ]),
  ]),
];

/** Fields that only the plan of a child has, or that plans of main agents did not have in earlier versions. */
const childOnly = /^(chosenModel|definition|task|sessionDirectory|spawn)(\.|$)/;
const mainChecks = checks.filter(([at]) => !childOnly.test(at));

/**
 * Reads a plan from JSON: the plan itself, or the answer of `retinue plan --json`, which has it as `plan`. Plans of earlier
 * versions get the fields that they do not have.
 */
export function readAgentPlan(value: unknown, kind: "child"): PlanReading<ChildPlan>;
export function readAgentPlan(value: unknown, kind: "main"): PlanReading;
export function readAgentPlan(value: unknown, kind: "main" | "child"): PlanReading {
  const plan = isRecord(value) && isRecord(value["plan"]) ? value["plan"] : value;
  if (!isRecord(plan)) return { type: "invalid", at: "", expected: "an object", found: quote(plan) };
  const { version } = value as JsonRecord;
  if (plan !== value && version !== 1)
    return { type: "invalid", at: "version", expected: "1", found: quote(version) };
  const flaw = findFlaw(plan, kind === "main" ? mainChecks : checks);
  if (flaw !== undefined) return flaw;
  // Every field that is acted on was checked; the others come from the same program.
  const read = plan as unknown as AgentPlan;
  const { chosenModel = { id: read.model.value }, sessionDirectory = read.directory, overrode = [] } = read;
  return { type: "plan", plan: { ...read, chosenModel, sessionDirectory, overrode } };
}

function findFlaw(
  plan: JsonRecord,
  required: readonly Check[],
): Extract<PlanReading, { readonly type: "invalid" }> | undefined {
  const fieldAt = (at: string): unknown => at.split(".").reduce<unknown>(fieldOf, plan);
  const flaw =
    required.find(([at, , test]) => !test(fieldAt(at))) ??
    optionalChecks.find(([at, , test]) => fieldAt(at) !== undefined && !test(fieldAt(at)));
  if (flaw === undefined) return undefined;
  const [at, expected] = flaw;
  return { type: "invalid", at, expected, found: quote(fieldAt(at)) };
}

function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? (value as JsonRecord)[name] : undefined;
}

function isMode(value: unknown): value is PermissionMode {
  return typeof value === "string" && parsePermissionMode(value) === value;
}

import { kindOf, shown } from "../../foundation/json-record.ts";
import { nearestName } from "../../foundation/nearest-name.ts";
import {
  effortLevels,
  parsePermissionMode,
  permissionModes,
  settingSources,
} from "../../foundation/option-words.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";

type Check = (value: unknown) => string | undefined;

const text: Check = (value) => (typeof value === "string" ? undefined : "must be a string");
const flag: Check = (value) => (typeof value === "boolean" ? undefined : "must be true or false");
const call: Check = (value) => (typeof value === "function" ? undefined : "must be a function");
const thing: Check = (value) =>
  typeof value === "object" && value !== null ? undefined : "must be an object";
/** By name, so no list. */
const isByName = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const record: Check = (value) => (isByName(value) ? undefined : "must be an object by name");
/** An object with these functions, and with others that are functions if they are there. */
function methods(needed: readonly string[], others: readonly string[] = []): Check {
  return (value) => {
    if (typeof value !== "object" || value === null) return "must be an object";
    const missing = needed.find((name) => typeof Reflect.get(value, name) !== "function");
    if (missing !== undefined) return `must have a function ${missing}()`;
    const wrong = others.find((name) => !["undefined", "function"].includes(typeof Reflect.get(value, name)));
    return wrong === undefined ? undefined : `must have a function ${wrong}(), or nothing of this name`;
  };
}
const variables: Check = (value) =>
  isByName(value) &&
  Object.values(Object(value)).every((entry) => entry === undefined || typeof entry === "string")
    ? undefined
    : "must be an object of strings";
const texts: Check = (value) =>
  Array.isArray(value) && value.every((entry) => typeof entry === "string")
    ? undefined
    : "must be a list of strings";
// Whether it is in range is decided where it is planned, together with numbers of files.
const number: Check = (value) => (typeof value === "number" ? undefined : "must be a number");
const count: Check = (value) =>
  Number.isSafeInteger(value) && Number(value) > 0 ? undefined : "must be a whole number from 1";
const model: Check = (value) =>
  (typeof value === "string" && value.trim() !== "") || isModelObject(value)
    ? undefined
    : 'must be the name of a model, such as "sonnet" or "openai/gpt-5", or a model object';
const signal: Check = (value) => (value instanceof AbortSignal ? undefined : "must be an AbortSignal");
const schema: Check = (value) =>
  (typeof value === "object" && value !== null) || typeof value === "function"
    ? undefined
    : "must be a schema: zod, Standard Schema or a JSON Schema object";

/** One of several words, with the closest one where none fits. */
function oneOf(words: readonly string[]): Check {
  return (value) => {
    if (typeof value === "string" && words.includes(value)) return undefined;
    const nearest = typeof value === "string" ? nearestName(value, words) : undefined;
    const hint = nearest === undefined ? "" : ` (did you mean ${JSON.stringify(nearest)}?)`;
    return `must be one of ${words.join(", ")}${hint}`;
  };
}

const effort: Check = (value) =>
  typeof value === "number" && value >= 0 ? undefined : oneOf(effortLevels)(value);
const mode: Check = (value) =>
  typeof value === "string" && parsePermissionMode(value) !== undefined
    ? undefined
    : oneOf(permissionModes)(value);
const sources: Check = (value) =>
  Array.isArray(value)
    ? value.flatMap((entry) => oneEntry(entry, oneOf(settingSources)(entry)))[0]
    : 'must be a list of "user", "project" and "local"';

function oneEntry(entry: unknown, complaint: string | undefined): readonly string[] {
  return complaint === undefined ? [] : [`has the entry ${shown(entry, 30)}, which ${complaint}`];
}

const runtimeChecks: Readonly<Record<string, Check>> = {
  cwd: text,
  home: text,
  env: variables,
  platform: text,
  agents: thing,
  tools: thing,
  model,
  store: methods(["run", "stop", "close"]),
  wrapModel: call,
  wrapExecutor: call,
  wrapPlan: call,
  idempotencyKey: call,
  settings: (value) =>
    typeof value === "string" || isByName(value)
      ? undefined
      : "must be the path of a settings file, JSON text or an object",
  settingSources: sources,
  pluginDirectories: texts,
  additionalDirectories: texts,
  mcpServers: record,
  mcpConfig: texts,
  strictMcpConfig: flag,
  trusted: flag,
  disallowedTools: texts,
  canUseTool: call,
  approver: methods(["approve"]),
  approvals: oneOf(["refuse", "inbox"]),
  hooks: thing,
  onWarning: call,
  host: methods([], ["ask", "todosChanged", "mayFetchPrivate"]),
  concurrency: count,
  overflow: oneOf(["queue", "refuse"]),
  teams: flag,
  transcripts: flag,
  durability: oneOf(["sync", "os"]),
  entrypoint: text,
  managedDirectory: text,
  clock: methods(["now", "sleep"]),
  telemetry: (value) =>
    typeof value === "boolean" || value === "environment"
      ? undefined
      : 'must be true, false or "environment"',
};

const sessionChecks: Readonly<Record<string, Check>> = {
  agent: text,
  model,
  effort,
  permissionMode: mode,
  skipPermissions: flag,
  tools: thing,
  allowedTools: texts,
  disallowedTools: texts,
  systemPrompt: text,
  appendSystemPrompt: text,
  appendSubagentSystemPrompt: text,
  maxTurns: number,
  maxBudgetUsd: number,
  limits: thing,
  resume: text,
  continue: flag,
  forkSession: flag,
  sessionId: text,
  takeOver: flag,
  childrenOnly: flag,
  leadsTeam: flag,
  permissionPromptTool: text,
  planOnly: flag,
  slashCommands: flag,
  mentions: flag,
  resumeAt: text,
  resumeDrops: text,
  output: schema,
  interactive: thing,
};

const childChecks: Readonly<Record<string, Check>> = {
  description: text,
  model: text,
  resume: text,
  keepTools: flag,
  background: flag,
  maxTurns: number,
  limits: thing,
  name: text,
  isolation: text,
  effort,
  permissionMode: mode,
  systemPrompt: text,
  appendSystemPrompt: text,
  output: schema,
  signal,
};

const { skipPermissions, tools, allowedTools, disallowedTools, maxBudgetUsd, permissionPromptTool } =
  sessionChecks;

/** What each function takes. */
const tables = {
  createRuntime: runtimeChecks,
  open: sessionChecks,
  run: { ...sessionChecks, signal },
  "session.run": { signal },
  replay: {
    tools: oneOf(["recorded", "real"]),
    from: text,
    agent: text,
    model,
    systemPrompt: text,
    appendSystemPrompt: text,
    prompt: text,
    signal,
    onRequest: call,
  },
  "session.spawn": childChecks,
  spawn: {
    ...childChecks,
    model,
    skipPermissions,
    tools,
    allowedTools,
    disallowedTools,
    maxBudgetUsd,
    permissionPromptTool,
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Check | undefined>>>>;

type Taker = keyof typeof tables;

/** Names that other libraries, and earlier versions, use for the same. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["environment", "env"],
  ["extraTools", "tools"],
  ["notice", "onWarning"],
  ["maxBudget", "maxBudgetUsd"],
  ["mode", "permissionMode"],
  ["abortController", "signal"],
  ["abortSignal", "signal"],
  ["permissionPromptToolName", "permissionPromptTool"],
  ["outputFormat", "output"],
  ["schema", "output"],
  ["system", "systemPrompt"],
  ["instructions", "systemPrompt"],
  ["maxSteps", "maxTurns"],
  ["stopWhen", "maxTurns"],
  ["maxConcurrency", "concurrency"],
  ["plugins", "pluginDirectories"],
]);

/** Refuses options that are unknown or of the wrong kind, with one sentence and the closest match. */
export function checkOptions(taker: Taker, options: unknown): void {
  const name = `${taker}()`;
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw invalid(`The options of ${name} must be an object, but are ${kindOf(options)}.`);
  const checks: Readonly<Record<string, Check | undefined>> = tables[taker];
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
    if (check === undefined) throw unknownOption(taker, key);
    const complaint = check(value);
    if (complaint !== undefined)
      throw invalid(`The option ${key} of ${name} ${complaint}, but is ${shown(value, 60)}.`);
  }
}

function unknownOption(taker: Taker, key: string): RetinueError {
  const known = Object.keys(tables[taker]);
  const other = otherNames.get(key);
  const nearest = other !== undefined && known.includes(other) ? other : nearestName(key, known);
  const message = `${JSON.stringify(key)} is not an option of ${taker}().`;
  if (nearest !== undefined) return invalid(`${message} Did you mean ${JSON.stringify(nearest)}?`);
  const owner = (["createRuntime", "run"] as const).find((name) => Object.hasOwn(tables[name], key));
  return invalid(
    owner === undefined
      ? `${message} Its options are ${known.join(", ")}.`
      : `${message} It is an option of ${owner}().`,
  );
}

/** A prompt is text, or blocks of text, images and documents. */
export function checkPrompt(taker: string, prompt: unknown): void {
  const isFilled =
    typeof prompt === "string" ? prompt.trim() !== "" : Array.isArray(prompt) && prompt.length > 0;
  const entries: readonly unknown[] = Array.isArray(prompt) ? prompt : [];
  const wrong = entries.find((block) => typeof Object(block)["type"] !== "string");
  if (wrong !== undefined)
    throw invalid(
      `The prompt of ${taker}() must be a string or a list of content blocks such as { type: "text", text }, but has ${shown(wrong, 60)}.`,
    );
  if (isFilled) return;
  const what = prompt === "" ? "empty" : shown(prompt, 60);
  throw invalid(`The prompt of ${taker}() must be a string or a list of content blocks, but is ${what}.`);
}

export function checkAgentType(taker: string, agentType: unknown): void {
  if (typeof agentType === "string" && agentType !== "") return;
  throw invalid(
    `The first argument of ${taker}() must be the name of an agent, such as "Explore", but is ${shown(agentType, 60)}.`,
  );
}

export function isModelObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return ["stream", "doStream"].some((method) => typeof Reflect.get(value, method) === "function");
}

export function invalid(message: string): RetinueError {
  return new RetinueError("invalid-option", message);
}

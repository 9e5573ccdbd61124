import {
  type Check,
  checks,
  checkTable,
  invalid,
  isPlainObject,
  unknownOption,
} from "@retinue/base/foundation/check-arguments.ts";
import { kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import {
  effortLevels,
  parsePermissionMode,
  permissionModes,
  settingSources,
} from "@retinue/base/foundation/option-words.ts";
import type { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { sessionDefaults } from "./runtime-options.ts";
import { childSessionKeys } from "./spawn-options.ts";

const { text, filled, flag, call, thing, record, variables, texts, number, count, signal, oneOf, methods } =
  checks;
const model: Check = (value) =>
  (typeof value === "string" && value.trim() !== "") || isModelObject(value)
    ? undefined
    : 'must be the name of a model, such as "sonnet" or "openai/gpt-5", or a model object';
const schema: Check = (value) =>
  isPlainObject(value) || typeof value === "function"
    ? undefined
    : "must be a schema: zod, Standard Schema or a JSON Schema object";
const effort: Check = (value) => {
  if (typeof value !== "number") return oneOf(effortLevels)(value);
  return value >= 0 && value <= 100 ? undefined : "must be a number from 0 to 100";
};
const mode: Check = (value) =>
  typeof value === "string" && parsePermissionMode(value) !== undefined
    ? undefined
    : oneOf(permissionModes)(value);
const sources: Check = (value) =>
  Array.isArray(value)
    ? checks.listOf(oneOf(settingSources), "sources")(value)
    : 'must be a list of "user", "project" and "local"';

/** Lists of what this program made, or the same by name. */
function listOrRecord(entries: string): Check {
  return (value) =>
    Array.isArray(value) || isPlainObject(value) ? undefined : `must be a list of ${entries}, or an object`;
}

const plan: Check = (value) =>
  typeof Object(Object(value)["agent"])["id"] === "string" && kindOf(Object(value)["task"]) === "an object"
    ? undefined
    : "must be the plan of a child agent, as session.planAgent() gives it";

const servers: Check = (value) =>
  record(value) ?? Object.entries(Object(value)).flatMap(([name, server]) => wrongServer(name, server))[0];

/** What is no server at all is a mistake of the program; one that cannot be used is reported like those of files. */
function wrongServer(name: string, server: unknown): readonly string[] {
  const has = `has the server ${quote(name, 40)}, which`;
  if (kindOf(server) !== "an object") return [`${has} must be an object, but is ${quote(server, 40)}`];
  const { type, instance } = Object(server);
  if (type !== "sdk" || typeof Object(instance)["connect"] === "function") return [];
  return [`${has} needs an instance with a function connect()`];
}

/** Checks of what only a runtime knows. */
export const runtimeChecks = { mode, plan };

const platforms = ["aix", "android", "darwin", "freebsd", "linux", "openbsd", "sunos", "win32"];

const ownChecks: Readonly<Record<string, Check>> = {
  cwd: text,
  home: text,
  env: variables,
  platform: oneOf(platforms),
  agents: listOrRecord("agents"),
  tools: listOrRecord("tools and names of tools"),
  model,
  store: methods(["run", "stop", "close"]),
  wrapModel: call,
  wrapExecutor: call,
  wrapPlan: call,
  idempotencyKey: call,
  settings: (value) =>
    typeof value === "string" || isPlainObject(value)
      ? undefined
      : "must be the path of a settings file, JSON text or an object",
  settingSources: sources,
  pluginDirectories: texts,
  agentSources: texts,
  additionalDirectories: texts,
  mcpServers: servers,
  mcpConfig: texts,
  strictMcpConfig: flag,
  trusted: flag,
  disallowedTools: texts,
  canUseTool: call,
  approver: methods(["approve"]),
  approvals: oneOf(["refuse", "inbox"]),
  hooks: listOrRecord("hooks"),
  onWarning: call,
  host: methods([], ["ask", "todosChanged", "mayFetchPrivate"]),
  concurrency: count,
  overflow: oneOf(["queue", "refuse"]),
  teams: flag,
  transcripts: (value) =>
    typeof value === "boolean" || (typeof value === "string" && value !== "")
      ? undefined
      : "must be true, false or the path of a folder",
  durability: oneOf(["sync", "os"]),
  entrypoint: text,
  managedDirectory: text,
  clock: methods(["now", "sleep"]),
  telemetry: (value) =>
    typeof value === "boolean" || value === "environment"
      ? undefined
      : 'must be true, false or "environment"',
};

/** Options of a session that a runtime can set for all of its sessions. */
const defaultChecks: Readonly<Record<(typeof sessionDefaults)[number], Check>> = {
  agent: text,
  effort,
  fallbackModel: (value) =>
    [value].flat().every((name) => typeof name === "string" && name.trim() !== "")
      ? undefined
      : "must be the name of a model, or a list of names",
  permissionMode: mode,
  skipPermissions: flag,
  allowedTools: texts,
  systemPrompt: text,
  appendSystemPrompt: text,
  appendSubagentSystemPrompt: text,
  maxTurns: number,
  maxBudgetUsd: number,
  limits: thing,
  background: oneOf(["wait", "leave", "stop"]),
  slashCommands: flag,
};

const creationChecks: Readonly<Record<string, Check>> = { ...ownChecks, ...defaultChecks };

const sessionChecks: Readonly<Record<string, Check>> = {
  ...defaultChecks,
  model,
  tools: listOrRecord("tools and names of tools"),
  disallowedTools: texts,
  cwd: text,
  env: variables,
  trusted: flag,
  canUseTool: call,
  approver: methods(["approve"]),
  hooks: listOrRecord("hooks"),
  resume: text,
  continue: flag,
  forkSession: flag,
  sessionId: text,
  takeOver: flag,
  childrenOnly: flag,
  leadsTeam: flag,
  permissionPromptTool: text,
  planOnly: flag,
  offlineDemo: flag,
  mentions: flag,
  resumeAt: text,
  resumeDrops: text,
  output: schema,
};

const {
  resume: _resume,
  continue: _continue,
  forkSession: _fork,
  output: _output,
  childrenOnly: _only,
  leadsTeam: _leads,
  ...workflowSessionChecks
} = sessionChecks;
// What is in them is read where they are planned, together with those of files.
const verify = checks.either(
  "must be a command, a list of commands, or an object with run",
  text,
  thing,
  checks.list,
);

const mergeChecks: Readonly<Record<string, Check>> = {
  into: filled,
  checks: verify,
  only: texts,
  resolver: checks.either("must be the name of an agent, or false", filled, (value) =>
    value === false ? undefined : "must be false",
  ),
  apply: flag,
  dryRun: flag,
  discard: texts,
  signal,
};

/** The options of a merge that a run can ask for. */
const { into, checks: mergeVerify, only, resolver, apply } = mergeChecks;
const integrateTable = { into, checks: mergeVerify, only, resolver, apply };
const integrate: Check = (value) => {
  if (typeof value === "boolean") return undefined;
  if (!isPlainObject(value)) return "must be true or the options of a merge";
  for (const [key, entry] of Object.entries(value)) {
    if (!Object.hasOwn(integrateTable, key))
      return `has ${quote(key)}, which is not an option of a merge behind a run`;
    const wrong = entry === undefined ? undefined : mergeChecks[key]?.(entry);
    if (wrong !== undefined) return `has ${quote(key)}, which ${wrong}`;
  }
  return undefined;
};

const childChecks: Readonly<Record<string, Check>> = {
  description: text,
  model: text,
  resume: text,
  keepTools: flag,
  background: flag,
  maxTurns: number,
  limits: thing,
  verify,
  name: text,
  isolation: text,
  cwd: text,
  env: variables,
  timeout: number,
  effort,
  permissionMode: mode,
  systemPrompt: text,
  appendSystemPrompt: text,
  output: schema,
  signal,
};

/** The options of a session that a child which the runtime starts can have of its own. */
const ownSessionChecks = Object.fromEntries(childSessionKeys.map((key) => [key, sessionChecks[key]]));

/** What each function takes. */
const tables = {
  createRuntime: creationChecks,
  open: sessionChecks,
  run: { ...sessionChecks, signal, integrate },
  "session.run": { signal, integrate },
  toResponse: {
    format: oneOf(["events", "ui-messages"]),
    status: count,
    headers: variables,
    approvals: methods(["pending", "onChange"]),
    partial: flag,
  },
  answer: { sessionId: filled },
  "session.compact": { signal },
  workflow: { ...workflowSessionChecks, resumeRun: filled, fresh: texts, maxTokens: count, signal },
  "tasks.wait": { signal },
  "tasks.watch": { signal },
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
  "session.merge": mergeChecks,
  merge: mergeChecks,
  "session.spawn": childChecks,
  "session.quote": childChecks,
  spawn: {
    ...childChecks,
    model,
    ...ownSessionChecks,
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Check | undefined>>>>;

type OptionOwner = keyof typeof tables;

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
export function checkOptions(taker: OptionOwner, options: unknown): void {
  checkTable(taker, tables[taker], options, (key) => unknownTo(taker, key));
  if (taker === "open" || taker === "run") checkNeeds(taker, Object(options));
}

/** Options that say nothing without one of others. */
const needs: Readonly<Record<string, readonly string[]>> = {
  resumeAt: ["resume", "continue"],
  resumeDrops: ["resumeAt"],
  leadsTeam: ["childrenOnly"],
};

function checkNeeds(taker: string, options: Readonly<Record<string, unknown>>): void {
  const isSet = (key: string): boolean => options[key] !== undefined && options[key] !== false;
  for (const [key, others] of Object.entries(needs)) {
    if (!isSet(key) || others.some(isSet)) continue;
    throw invalid(`The option ${key} of ${taker}() has no effect without ${others.join(" or ")}.`);
  }
}

/** Names of other libraries and options of other functions come before the nearest name. */
function unknownTo(taker: OptionOwner, key: string): RetinueError {
  const known = Object.keys(tables[taker]);
  const message = `${JSON.stringify(key)} is not an option of ${taker}().`;
  const other = otherNames.get(key);
  if (other !== undefined && known.includes(other))
    return invalid(`${message} Did you mean ${JSON.stringify(other)}?`);
  // allowedTools is an option of run(), and not a misspelt disallowedTools.
  const owner = (["createRuntime", "run"] as const).find((name) => Object.hasOwn(tables[name], key));
  return owner === undefined
    ? unknownOption(taker, known, key)
    : invalid(`${message} It is an option of ${owner}().`);
}

/** A prompt is text, or blocks of text, images and documents. */
export function checkPrompt(taker: string, prompt: unknown): void {
  const isFilled =
    typeof prompt === "string" ? prompt.trim() !== "" : Array.isArray(prompt) && prompt.length > 0;
  const entries: readonly unknown[] = Array.isArray(prompt) ? prompt : [];
  const wrong = entries.find((block) => !isPromptBlock(block));
  if (wrong !== undefined)
    throw invalid(
      `The prompt of ${taker}() must be a string or a list of content blocks such as { type: "text", text }, but has ${quote(wrong, 60)}.`,
    );
  if (isFilled) return;
  const what = prompt === "" ? "empty" : quote(prompt, 60);
  throw invalid(`The prompt of ${taker}() must be a string or a list of content blocks, but is ${what}.`);
}

/** Kinds that only providers know are left to them; text without text would fail inside. */
function isPromptBlock(block: unknown): boolean {
  const { type, text: written, source } = Object(block);
  if (type === "text") return typeof written === "string";
  if (type === "image" || type === "document") return typeof source === "object" && source !== null;
  return typeof type === "string";
}

export function checkAgentType(taker: string, agentType: unknown): void {
  if (typeof agentType === "string" && agentType !== "") return;
  throw invalid(
    `The first argument of ${taker}() must be the name of an agent, such as "Explore", but is ${quote(agentType, 60)}.`,
  );
}

export function isModelObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return ["stream", "doStream"].some((method) => typeof Reflect.get(value, method) === "function");
}

import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { readSessionAgents } from "../../../../src/definitions.ts";
import type { AgentDefinition } from "../../../../src/index.ts";
import { type HostHook, readHostHooks } from "./host-hooks.ts";

/** What a host says in `initialize`, with every value checked. */
export interface Initialize {
  readonly hooks: readonly HostHook[];
  readonly hasHooks: boolean;
  readonly servers: readonly HostServerConfig[];
  readonly jsonSchema?: JsonRecord;
  readonly systemPrompt?: string;
  readonly appendSystemPrompt?: string;
  readonly planModeInstructions?: string;
  readonly agents: readonly AgentDefinition[];
  readonly title?: string;
  /** Names of the skills the main agent may have; absent means all. */
  readonly skills?: readonly string[];
  readonly toolAliases?: ReadonlyMap<string, string>;
  readonly plugins: readonly string[];
  readonly forwardSubagentText: boolean;
  readonly agentProgressSummaries: boolean;
  readonly appendSubagentSystemPrompt?: string;
  /** An interrupt leaves children in the background alone. */
  readonly perTaskStopAffordance: boolean;
}

/** An MCP server in the memory of the host. */
export interface HostServerConfig {
  readonly name: string;
  readonly timeoutMs?: number;
  /** Tools that are always asked for, or always denied. */
  readonly policies: readonly { readonly tool: string; readonly behavior: "ask" | "deny" }[];
}

export const noInitialize: Initialize = {
  hooks: [],
  hasHooks: false,
  servers: [],
  agents: [],
  plugins: [],
  forwardSubagentText: false,
  agentProgressSummaries: false,
  perTaskStopAffordance: false,
};

/** Members that say something about the host, or only permit what is not done here. */
const harmless: ReadonlySet<string> = new Set([
  "subtype",
  "supportedDialogKinds",
  "systemPromptSnapshot",
  "excludeDynamicSections",
  "sdkMcpServerManifests",
  "sdkMcpServerManifestsOrigin",
  "captureSdkMcpManifests",
  "promptSuggestions",
  "rapidFollowupPreempt",
  "forwardNestedSubagentToolCalls",
]);

const known: ReadonlySet<string> = new Set([
  ...harmless,
  "hooks",
  "sdkMcpServers",
  "sdkMcpServerConfigs",
  "jsonSchema",
  "systemPrompt",
  "appendSystemPrompt",
  "planModeInstructions",
  "agents",
  "title",
  "skills",
  "toolAliases",
  "plugins",
  "forwardSubagentText",
  "perTaskStopAffordance",
  "appendSubagentSystemPrompt",
  "agentProgressSummaries",
]);

/** Throws where anything could not be honoured: what a host asked for must not be dropped. */
export function readInitialize(request: JsonRecord): Initialize {
  for (const [key, value] of Object.entries(request))
    if (!known.has(key) && isAsked(value))
      throw invalid(`the member ${JSON.stringify(key)} is not supported`);
  const schema = request["jsonSchema"];
  if (isAsked(schema) && !isRecord(schema)) throw invalid("`jsonSchema` must be an object");
  return {
    hooks: readHostHooks(request["hooks"]),
    hasHooks: isAsked(request["hooks"]),
    servers: readServers(request),
    ...(isRecord(schema) ? { jsonSchema: schema } : {}),
    ...readPrompt(request["systemPrompt"]),
    ...readText(request, "appendSystemPrompt"),
    ...readText(request, "planModeInstructions"),
    ...readText(request, "title"),
    agents: readAgents(request["agents"]),
    ...readSkills(request["skills"]),
    ...readAliases(request["toolAliases"]),
    plugins: readPlugins(request["plugins"]),
    forwardSubagentText: request["forwardSubagentText"] === true,
    agentProgressSummaries: request["agentProgressSummaries"] === true,
    ...readText(request, "appendSubagentSystemPrompt"),
    perTaskStopAffordance: request["perTaskStopAffordance"] === true,
  };
}

function isAsked(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

function readPrompt(value: unknown): { readonly systemPrompt?: string } {
  if (!isAsked(value)) return {};
  if (typeof value === "string") return { systemPrompt: value };
  return { systemPrompt: texts(value, "systemPrompt").join("\n\n") };
}

function readText<Key extends string>(request: JsonRecord, key: Key): { readonly [K in Key]?: string } {
  const value = request[key];
  if (!isAsked(value)) return {};
  if (typeof value !== "string") throw invalid(`\`${key}\` must be a string`);
  // The one key is the one asked for, which a computed name cannot show the compiler.
  return { [key]: value } as { readonly [K in Key]?: string };
}

function readSkills(value: unknown): { readonly skills?: readonly string[] } {
  return isAsked(value) ? { skills: texts(value, "skills") } : {};
}

function readAliases(value: unknown): { readonly toolAliases?: ReadonlyMap<string, string> } {
  if (!isAsked(value)) return {};
  if (!isRecord(value)) throw invalid("`toolAliases` must be an object");
  const entries = Object.entries(value).map(([name, tool]) => {
    if (typeof tool !== "string") throw invalid(`the alias ${JSON.stringify(name)} must name a tool`);
    return [name, tool] as const;
  });
  return entries.length === 0 ? {} : { toolAliases: new Map(entries) };
}

function readAgents(value: unknown): readonly AgentDefinition[] {
  if (!isAsked(value)) return [];
  const { definitions, diagnostics } = readSessionAgents(value, () => undefined);
  const error = diagnostics.find(({ severity }) => severity === "error");
  const count = isRecord(value) ? Object.keys(value).length : 0;
  if (error !== undefined || definitions.length !== count)
    throw invalid(`an agent is not usable: ${(error ?? diagnostics[0])?.message ?? "it cannot be read"}`);
  return definitions;
}

function readPlugins(value: unknown): readonly string[] {
  if (!isAsked(value)) return [];
  if (!Array.isArray(value)) throw invalid("`plugins` must be a list");
  return value.map((plugin: unknown) => {
    const { type, path } = isRecord(plugin) ? plugin : {};
    if (type !== "local" || typeof path !== "string")
      throw invalid('a plugin must be { type: "local", path }');
    return path;
  });
}

function readServers(request: JsonRecord): readonly HostServerConfig[] {
  const names = isAsked(request["sdkMcpServers"]) ? texts(request["sdkMcpServers"], "sdkMcpServers") : [];
  const configs = isRecord(request["sdkMcpServerConfigs"]) ? request["sdkMcpServerConfigs"] : {};
  return names.map((name) =>
    readServerConfig(name, Object.hasOwn(configs, name) ? configs[name] : undefined),
  );
}

export function readServerConfig(name: string, config: unknown): HostServerConfig {
  const { timeout, tools } = isRecord(config) ? config : {};
  const policies = (Array.isArray(tools) ? tools : []).flatMap((each: unknown) => {
    const { name: tool, permission_policy: policy } = isRecord(each) ? each : {};
    if (typeof tool !== "string" || policy === "always_allow") return [];
    return [{ tool, behavior: policy === "always_deny" ? ("deny" as const) : ("ask" as const) }];
  });
  return {
    name,
    ...(typeof timeout === "number" && timeout >= 1000 ? { timeoutMs: timeout } : {}),
    policies,
  };
}

function texts(value: unknown, key: string): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw invalid(`\`${key}\` must be a list of strings`);
}

function invalid(reason: string): RetinueError {
  return new RetinueError("invalid-initialize", `initialize cannot be honoured: ${reason}`);
}

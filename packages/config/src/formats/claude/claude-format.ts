import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { AgentDefinition, AgentMcpServer } from "../../agents/agent-definition.ts";
import { runnerInput } from "../../agents/agent-runner.ts";
import { parseAgentDefinition } from "../../agents/parse-agent-definition.ts";
import {
  emptyAgent,
  fileStem,
  modelOf,
  modelWord,
  permissionMode,
  portableMode,
  restOf,
  usableName,
} from "../common-fields.ts";
import type { FormatId } from "../format-facts.ts";
import type { AgentFormat, PortableAgent, PortableReading, ReadContext } from "../portable-agent.ts";
import { readOwnEntry, writeOwnEntry } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

/** Claude Code's own files, which are ours as well. */
export const claudeFormat: AgentFormat = {
  id: "claude",
  read: (text, context) => readOwnFile(text, context, "claude"),
  write: (agent, note) => writeFenced(ownFields(agent, "claude"), agent.prompt, note),
  fileName: (agent) => `${fileStem(agent)}.md`,
};

export function readOwnFile(text: string, { file }: ReadContext, format: FormatId): PortableReading {
  const { definition, diagnostics } = parseAgentDefinition(text, { file, scope: "project" });
  if (definition === undefined) return { agents: [], diagnostics };
  const placeOf = ([key]: readonly (string | number)[]) => definition.written[String(key)]?.place;
  return { agents: [{ agent: fromDefinition(definition, format), placeOf }], diagnostics };
}

/** A definition in the form between formats. */
export function fromDefinition(definition: AgentDefinition, format: FormatId = "claude"): PortableAgent {
  const { tools, disallowedTools = [], hooks, limits, effort, maxTurns, written } = definition;
  const { seconds, usd, tokens, ...otherLimits } = limits ?? {};
  const wroteHooks = hooks === undefined ? undefined : written["hooks"]?.value;
  const rest = Object.entries({
    initialPrompt: definition.initialPrompt,
    omitClaudeMd: definition.omitClaudeMd,
    criticalSystemReminder_EXPERIMENTAL: definition.criticalSystemReminder_EXPERIMENTAL,
    forkContext: definition.forkContext,
    cwd: definition.cwd,
    env: definition.env,
    timeout: definition.timeout,
    runner: definition.runner === undefined ? undefined : runnerInput(definition.runner),
    limits: Object.keys(otherLimits).length === 0 ? undefined : otherLimits,
  }).filter(([, value]) => value !== undefined);
  return {
    ...emptyAgent(format, definition.source.file),
    id: definition.name,
    description: definition.description,
    prompt: definition.prompt,
    model: modelOf(definition.model, format),
    effort: effort === undefined ? undefined : String(effort),
    tools: tools === undefined ? "all" : tools.map(readOwnEntry),
    deny: disallowedTools.map(readOwnEntry),
    mcp: definition.mcpServers,
    mode: portableMode(definition.permissionMode),
    limits: { turns: maxTurns, seconds, usd, tokens },
    background: definition.background,
    isolation: definition.isolation,
    skills: definition.skills,
    hooks: isRecord(wroteHooks) ? wroteHooks : undefined,
    memory: definition.memory,
    color: definition.color,
    rest: Object.fromEntries(rest),
  };
}

/** The fields of our own files in the order of their table. */
export function ownFields(agent: PortableAgent, format: FormatId): (readonly [string, unknown])[] {
  const { deny, limits } = agent;
  // A word that names no tool in its own product must not become one of ours because it is spelt alike.
  const isOwn = agent.origin.format === "claude" || agent.origin.format === "agents";
  const tools =
    agent.tools === "all" || isOwn ? agent.tools : agent.tools.filter((tool) => tool.class !== "other");
  const rest = new Map(restOf(agent, format));
  const { turns, ...amounts } = limits;
  const others = rest.get("limits");
  const allLimits = Object.entries({ ...amounts, ...(isRecord(others) ? others : {}) }).filter(
    ([, value]) => value !== undefined,
  );
  const { model } = agent;
  const isOwnTier = model?.type === "tier" && ownTiers.has(model.value);
  return [
    ["name", usableName(agent.id)],
    ["description", agent.description],
    ["tools", tools === "all" ? undefined : ownList(tools.map(writeOwnEntry))],
    ["disallowedTools", deny.length === 0 ? undefined : ownList(deny.map(writeOwnEntry))],
    ["model", isOwnTier ? model.value : modelWord(agent, format, /^claude-|^[\w.-]+\//)],
    ["permissionMode", permissionMode(agent.mode)],
    ["maxTurns", turns],
    ["skills", agent.skills === undefined || agent.skills.length === 0 ? undefined : agent.skills.join(", ")],
    ["mcpServers", writeServers(agent.mcp)],
    ["hooks", agent.hooks],
    ["memory", agent.memory],
    ["color", agent.color],
    ["background", agent.background],
    ["effort", effortWord(agent.effort)],
    ["isolation", agent.isolation],
    ["limits", allLimits.length === 0 ? undefined : Object.fromEntries(allLimits)],
    ...[...rest].filter(([key]) => key !== "limits"),
  ];
}

const ownTiers: ReadonlySet<string> = new Set(["sonnet", "opus", "haiku", "fable"]);

/** One line where that reads back the same; an entry with a comma in it needs a list. */
function ownList(words: readonly string[]): string | readonly string[] {
  const entries = [...new Set(words)];
  return entries.length === 0 || entries.some((entry) => /[,;|"'`[\]\n]/.test(entry))
    ? entries
    : entries.join(", ");
}

function effortWord(effort: string | undefined): string | number | undefined {
  return effort !== undefined && /^\d+$/.test(effort) ? Number(effort) : effort;
}

export function writeServers(servers: readonly AgentMcpServer[] | undefined): unknown {
  if (servers === undefined) return undefined;
  return servers.map((server) => {
    if (server.type === "inline") return { [server.name]: server.config };
    return server.tools === undefined ? server.name : { serverName: server.name, tools: server.tools };
  });
}

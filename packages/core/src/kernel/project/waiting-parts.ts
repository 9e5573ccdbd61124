import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import type { HookHandler } from "@retinue/config/hooks/hook-rule.ts";
import type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import type { McpEntry } from "@retinue/config/settings/load-mcp-entries.ts";
import { type HeldBack, mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import type { Skill } from "@retinue/config/skills/skill.ts";
import { splitSkill } from "@retinue/config/skills/skill-pieces.ts";
import type { ProjectFacts } from "./project-facts.ts";

interface TrustFacts extends Pick<ProjectFacts, "discovered"> {
  /** How a file is shown. */
  pathText(file: string): string;
}

/** One thing in a folder that counts only when the folder is trusted. */
export interface WaitingPart {
  readonly kind: "runs" | "variable" | "right" | "setting";
  /** `hooks.Stop`, `env.PATH`, `agent sql-reviewer: hooks.Stop` … */
  readonly name: string;
  readonly value?: string;
  readonly from: string;
}

/** What a repository can bring besides settings and agents. */
interface Brought {
  readonly servers: readonly McpEntry[];
  readonly skills: readonly Skill[];
}

/** Everything that waits for trust, or has it already, in the order of how much it can do. */
export function waitingParts(session: TrustFacts, { servers, skills }: Brought): readonly WaitingPart[] {
  const { registry, settings } = session.discovered;
  const { heldBack } = mergeSettings(settings.layers, { trusted: false });
  // Trust changes nothing about what a repository can never say.
  const never = new Set(mergeSettings(settings.layers, { trusted: true }).heldBack.map(identityOf));
  const fromSettings = heldBack
    .filter((held) => held.reason === "folder-not-trusted" && !never.has(identityOf(held)))
    .map((held): WaitingPart => settingPart(held, session));
  const fromAgents = registry
    .all()
    .flatMap(({ definition, shadowed }) => [definition, ...shadowed])
    .filter(({ source }) => !mayWiden(source, false) && mayWiden(source, true))
    .flatMap((definition) => agentParts(definition, session));
  const fromServers = servers
    .filter(({ fromRepository }) => fromRepository)
    .map((server) => serverPart(server, session));
  const fromSkills = skills
    .filter(({ source }) => !mayWiden(source, false) && mayWiden(source, true))
    .flatMap((skill) =>
      waitingOfSkill(skill).map((part) => ({ ...part, from: session.pathText(skill.source.file) })),
    );
  return inOrder([...fromSettings, ...fromServers, ...fromAgents, ...fromSkills]);
}

/** What can do most comes first. */
export function inOrder(parts: readonly WaitingPart[]): readonly WaitingPart[] {
  return waitingKinds.flatMap((kind) => parts.filter((part) => part.kind === kind));
}

function identityOf({ key, value, source }: HeldBack): string {
  return JSON.stringify([key, value, source.scope, source.file]);
}

/** In the order of how much they can do. */
const waitingKinds = ["runs", "variable", "right", "setting"] as const;

function settingPart(held: HeldBack, session: TrustFacts): WaitingPart {
  const { key, value } = held;
  // The value of such a key is a handler, as the layer has it.
  const text = key.startsWith("hooks.") ? hookText(value as HookHandler) : valueText(value);
  return {
    kind: kindOfSetting(key),
    name: key,
    value: text,
    from: held.source.file === undefined ? held.source.scope : session.pathText(held.source.file),
  };
}

const runningKeys: ReadonlySet<string> = new Set([
  "apiKeyHelper",
  "awsAuthRefresh",
  "awsCredentialExport",
  "enableAllProjectMcpServers",
  "enabledMcpjsonServers",
  "enabledPlugins",
  "extraKnownMarketplaces",
  "fileSuggestion",
  "mcpServers",
  "otelHeadersHelper",
  "pluginConfigs",
  "statusLine",
  "subagentStatusLine",
]);

function kindOfSetting(key: string): WaitingPart["kind"] {
  if (key.startsWith("hooks.") || runningKeys.has(key)) return "runs";
  if (key.startsWith("env.")) return "variable";
  return key.startsWith("permissions.") ? "right" : "setting";
}

function agentParts(definition: AgentDefinition, { pathText }: TrustFacts): readonly WaitingPart[] {
  const { name, hooks = [], mcpServers = [], runner, verify, permissionMode, memory, source } = definition;
  const from = source.file === undefined ? source.scope : pathText(source.file);
  return [
    ...hooks.map(
      ({ event, handler }): WaitingPart => ({
        kind: "runs",
        name: `agent ${name}, hooks.${event}`,
        value: hookText(handler),
        from,
      }),
    ),
    ...mcpServers.map(
      (server): WaitingPart => ({
        kind: "runs",
        name: `agent ${name}, MCP server ${server.name}`,
        value: server.type === "inline" ? inlineServerText(server.config) : "as configured elsewhere",
        from,
      }),
    ),
    ...(runner === undefined
      ? []
      : [
          {
            kind: "runs" as const,
            name: `agent ${name}, runner`,
            value: `${runner.command.join(" ")}${runner.unguarded === true ? " (unguarded)" : ""}`,
            from,
          },
        ]),
    ...(verify?.checks ?? []).map(
      ({ run }): WaitingPart => ({ kind: "runs", name: `agent ${name}, verify`, value: run, from }),
    ),
    ...(permissionMode === "acceptEdits"
      ? [{ kind: "right" as const, name: `agent ${name}, permissionMode`, value: permissionMode, from }]
      : []),
    ...(memory === "user"
      ? [{ kind: "setting" as const, name: `agent ${name}, memory`, value: memory, from }]
      : []),
  ];
}

/** As written: what a variable holds is not shown before trust. */
function serverPart({ config, file, scope }: McpEntry, { pathText }: TrustFacts): WaitingPart {
  const value = config.transport === undefined ? undefined : transportText(config.transport);
  return {
    kind: "runs",
    name: `MCP server ${config.name}`,
    value,
    from: file === undefined ? scope : pathText(file),
  };
}

/** What of a project's skill waits for trust: its commands, its hooks, and the calls it allows. */
function waitingOfSkill({ name, body, hooks = [], allowedTools = [] }: Skill): readonly {
  readonly kind: "runs" | "right";
  readonly name: string;
  readonly value?: string;
}[] {
  const commands = splitSkill(body).flatMap((piece) => (piece.type === "command" ? [piece.command] : []));
  return [
    ...commands.map((command) => ({
      kind: "runs" as const,
      name: `skill ${name}, command`,
      value: valueText(command),
    })),
    ...hooks.map(({ event, handler }) => ({
      kind: "runs" as const,
      name: `skill ${name}, hooks.${event}`,
      value: hookText(handler),
    })),
    ...(allowedTools.length === 0
      ? []
      : [{ kind: "right" as const, name: `skill ${name}, allowed-tools`, value: allowedTools.join(", ") }]),
  ];
}

/** A value in full on one line: plain text as it is, everything else as JSON, so that nothing in it is hidden. */
function valueText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return /[\p{Cc}\u2028\u2029]/u.test(value) ? JSON.stringify(value) : value;
}

/** What a hook would run, ask or send, with all that steers it. */
export function hookText(handler: HookHandler): string {
  const { type, command, args = [], url, prompt, server, tool, ...rest } = handler;
  const { timeout: _timeout, statusMessage: _message, once: _once, ...steering } = rest;
  const main = {
    command: [command ?? "", ...args].map(valueText).join(" "),
    http: `sends to ${valueText(url ?? "")}`,
    prompt: `asks a model: ${valueText(prompt ?? "")}`,
    agent: `asks an agent: ${valueText(prompt ?? "")}`,
    mcp_tool: `calls ${valueText(tool ?? "")} of the MCP server ${valueText(server ?? "")}`,
  }[type];
  return [main, ...fieldTexts(steering)].join(" ");
}

/** What connecting a server would start or reach, and with which variables and headers; as written, not expanded. */
export function transportText(transport: McpTransport): string | undefined {
  if (transport.type === "sdk") return undefined;
  if (transport.type === "stdio") {
    const { command, args, env, cwd } = transport;
    return [[command, ...args].map(valueText).join(" "), ...fieldTexts({ cwd, env })].join(" ");
  }
  const { url, headers, headersHelper } = transport;
  return [valueText(url), ...fieldTexts({ headers, headersHelper })].join(" ");
}

/** The same for a server that is in a definition. */
function inlineServerText(config: Readonly<Record<string, unknown>>): string {
  const { type: _type, command, args, url, ...rest } = config;
  const words = Array.isArray(args) ? args : [];
  const main = [command, ...words, url].filter((part) => part !== undefined).map(valueText);
  return [...main, ...fieldTexts(rest)].join(" ");
}

function fieldTexts(fields: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && !(isRecord(value) && Object.keys(value).length === 0))
    .map(([key, value]) => `${key}=${valueText(value)}`);
}

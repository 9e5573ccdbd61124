import { type Diagnostic, type Issue, placeFindings } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { type McpServerConfig, readServer } from "@retinue/config/mcp/mcp-server-config.ts";
import { loadPluginServers } from "@retinue/config/plugins/load-plugin.ts";
import { approveMcpServers, loadMcpApprovals } from "@retinue/config/settings/approve-mcp-servers.ts";
import {
  type AskedServer,
  type ChosenServers,
  chooseMcpServers,
  type McpFacts,
  readApprovalSettings,
} from "@retinue/config/settings/choose-mcp-servers.ts";
import { loadMcpEntries, type McpEntry, readMcpPolicy } from "@retinue/config/settings/load-mcp-entries.ts";

/** What a person says to a server that came with the project. */
export type McpAnswer = "for this session" | "remember" | "no";

export interface GatherMcpOptions {
  readonly discovered: Pick<DiscoveredAgents, "paths" | "settings" | "plugins">;
  readonly trusted: boolean;
  /** The process's variables with those of settings over them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly settingSources?: readonly ("user" | "project" | "local")[];
  /** Servers of the program itself, by name. */
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  /** JSON texts and paths of files, as `--mcp-config` takes them. */
  readonly mcpConfig?: readonly string[];
  /** Only `mcpConfig` and `mcpServers` count. */
  readonly strictMcpConfig?: boolean;
  /** Asks the person at the terminal; absent in unattended runs. */
  readonly ask?: (server: AskedServer) => Promise<McpAnswer>;
}

export interface GatheredMcp extends ChosenServers {
  /** Everything that was found, whatever became of it. */
  readonly entries: readonly McpEntry[];
  /** What decided; `chooseAgentServers` needs it for the servers of a definition. */
  readonly facts: McpFacts;
  readonly brokenConfig?: Diagnostic;
}

/** Reads all configured servers, asks about those that need it, and decides which are connected. Connects nothing. */
export async function gatherMcpServers(options: GatherMcpOptions): Promise<GatheredMcp> {
  const { paths, settings, plugins } = options.discovered;
  const { policy, diagnostics } = readMcpPolicy(settings.settings);
  const [loaded, fromPlugins, recorded] = await Promise.all([
    loadMcpEntries({
      paths,
      layers: settings.layers,
      sources: options.settingSources,
      mcpConfig: options.mcpConfig,
    }),
    loadPluginServers(plugins, {
      dataDirectory: paths.plugins.data,
      pluginConfigs: settings.settings.plain.pluginConfigs ?? {},
    }),
    loadMcpApprovals(paths),
  ]);
  const own = options.mcpServers === undefined ? noServers : fromProgram(options.mcpServers);
  const entries = [...loaded.entries, ...fromPlugins.entries, ...own.entries];
  const facts: McpFacts = {
    trusted: options.trusted,
    attended: options.ask !== undefined,
    policy,
    strict: options.strictMcpConfig === true,
    exclusive: loaded.isExclusive,
    lookup: createLookup(options.environment, paths.projectRoot),
    approvals: { ...readApprovalSettings(settings.layers), recorded },
  };
  const first = chooseMcpServers(entries, facts);
  const answered = await askAll(first, options);
  const decided = answered.answers.size === 0 ? facts : { ...facts, answers: answered.answers };
  const chosen = decided === facts ? first : chooseMcpServers(entries, decided);
  return {
    ...chosen,
    entries,
    facts: decided,
    diagnostics: [
      ...diagnostics,
      ...loaded.diagnostics,
      ...fromPlugins.diagnostics,
      ...own.diagnostics,
      ...answered.diagnostics,
      ...chosen.diagnostics,
    ],
    ...(loaded.brokenConfig === undefined ? {} : { brokenConfig: loaded.brokenConfig }),
  };
}

/** The servers that are in a definition; they live and die with its agent. */
export function chooseAgentServers(
  { name, mcpServers = [], source }: Pick<AgentDefinition, "name" | "mcpServers" | "source">,
  facts: McpFacts,
): ChosenServers {
  const issues: Issue[] = [];
  const inline = mcpServers.flatMap((server) => (server.type === "inline" ? [server] : []));
  const entries = inline.map(
    (server): McpEntry => ({
      config: readServer(server.name, server.config, ["mcpServers", server.name], issues),
      scope: source.scope === "managed" ? "managed" : "agent",
      fromRepository: false,
      needsTrust: source.scope === "project",
      file: source.file,
      locate: () => undefined,
    }),
  );
  const chosen = chooseMcpServers(entries, { ...facts, trusted: facts.trusted && mayWiden(source, true) });
  const diagnostics = placeFindings(issues, source.file ?? `agent ${name}`, () => undefined);
  return { ...chosen, diagnostics: [...diagnostics, ...chosen.diagnostics] };
}

/** The one that named servers for a run wants them: a `--mcp-config` that cannot be read ends it. */
export function refuseBrokenMcpConfig({ brokenConfig }: Pick<GatheredMcp, "brokenConfig">): void {
  if (brokenConfig === undefined) return;
  const { message, advice } = brokenConfig;
  throw new RetinueError(
    "invalid-mcp-config",
    `--mcp-config cannot be used: ${message}`,
    advice === undefined ? {} : { advice },
  );
}

function createLookup(environment: GatherMcpOptions["environment"], projectRoot: string): McpFacts["lookup"] {
  return (name) => {
    if (name === "CLAUDE_PROJECT_DIR") return projectRoot;
    return Object.hasOwn(environment, name) ? environment[name] : undefined;
  };
}

/** One question after the other: a person reads one definition at a time. */
async function askAll(
  { asked }: ChosenServers,
  { ask, discovered }: GatherMcpOptions,
): Promise<{ readonly answers: ReadonlyMap<string, boolean>; readonly diagnostics: readonly Diagnostic[] }> {
  const answers = new Map<string, boolean>();
  const diagnostics: Diagnostic[] = [];
  for (const server of ask === undefined ? [] : asked) {
    const answer = (await ask?.(server)) ?? "no";
    answers.set(server.hash, answer !== "no");
    if (answer !== "remember") continue;
    const { config } = server.entry;
    const outcome = await approveMcpServers(discovered.paths, [{ name: config.name, hash: server.hash }]);
    if (outcome.type === "refused") diagnostics.push(notRemembered(outcome));
  }
  return { answers, diagnostics };
}

function notRemembered({ file, why }: { readonly file: string; readonly why: string }): Diagnostic {
  return {
    severity: "warning",
    code: "mcp-approval-not-saved",
    message: `The approval could not be saved, so you will be asked again: ${why}.`,
    file,
  };
}

interface ProgramServers {
  readonly entries: readonly McpEntry[];
  readonly diagnostics: readonly Diagnostic[];
}

const noServers: ProgramServers = { entries: [], diagnostics: [] };

/** A program hands over configurations, or servers that live in its own memory. */
function fromProgram(servers: Readonly<Record<string, unknown>>): ProgramServers {
  const issues: Issue[] = [];
  const entries = Object.entries(servers).map(
    ([name, written]): McpEntry => ({
      config: readProgramServer(name, written, issues),
      scope: "program",
      fromRepository: false,
      locate: () => undefined,
    }),
  );
  return { entries, diagnostics: placeFindings(issues, undefined, () => undefined) };
}

function readProgramServer(name: string, written: unknown, issues: Issue[]): McpServerConfig {
  const path = ["mcpServers", name];
  const isInstance = isRecord(written) && written["type"] === "sdk" && isRecord(written["instance"]);
  if (!isInstance) return readServer(name, written, path, issues);
  return {
    name,
    kind: "sdk",
    transport: { type: "sdk" },
    disabled: false,
    alwaysLoad: written["alwaysLoad"] === true,
    written: { type: "sdk" },
    path,
  };
}

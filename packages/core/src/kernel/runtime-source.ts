// @io

import { randomUUID } from "node:crypto";
import { join, resolve } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { findHome, withHome } from "@retinue/base/foundation/find-home.ts";
import * as folders from "@retinue/base/foundation/find-working-folder.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { runProcess } from "@retinue/base/foundation/start-process.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type AgentInput, defineAgent } from "@retinue/config/agents/define-agent.ts";
import {
  type AgentCatalog,
  createAgentCatalog,
  type DiscoveredAgents,
} from "@retinue/config/discovery/discover-agents.ts";
import type { PlainSettings } from "@retinue/config/settings/plain-settings.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import type { SkillCatalog, SkillReader } from "@retinue/config/skills/skill-catalog.ts";
import { withEarlierNames } from "@retinue/gate/approver.ts";
import type { ProgramServer } from "../mcp/mcp-connections.ts";
import { holdConnections } from "../models/hold-connections.ts";
import type { LocalServer } from "../models/local-models.ts";
import { accountOf, createModelFactory, type ModelFactoryOptions } from "../models/model-factory.ts";
import { createQuotaWindows } from "../models/quota-window.ts";
import { createCoolDowns, createRequestGates } from "../models/request-gate.ts";
import { readModelClocks } from "../planning/plan-limits.ts";
import { readTeamSettings } from "../teams/team-settings.ts";
import { createTeamStores, type OpenTeam } from "../teams/team-store.ts";
import { createSandboxRuntime } from "../tools/sandbox/sandbox-runtime.ts";
import { createWall } from "../tools/sandbox/wall.ts";
import { readApprovals } from "./approvals/open-inbox.ts";
import { restrictionsOnly } from "./options/normalize-runtime-options.ts";
import type { RuntimeSetup } from "./options/runtime-options.ts";
import { findTrust } from "./project/lock/judge-lock.ts";
import type { FolderContext, ProgramParts, RuntimeContext, SharedResources } from "./runtime-context.ts";
import type { GatheredMcp, GatherMcpOptions } from "./servers/gather-mcp-servers.ts";

/** Reads everything anew whenever it is asked; what must be shared between sessions is made once. */
export interface RuntimeSource extends AsyncDisposable {
  gather(): Promise<RuntimeContext>;
  /** The agents there are now; nothing else is looked at. */
  loadRegistry(): Promise<Pick<FolderContext, "discovered">>;
  register(agent: AgentDefinition | AgentInput): void;
  unregister(name: string): void;
  /** The same for another folder or with other variables; what is shared between sessions stays shared. */
  at(place: SessionPlace): RuntimeSource;
}

/** Where one session runs, as far as that differs from its runtime. */
export interface SessionPlace {
  readonly cwd?: string | undefined;
  /** Set over the variables of the runtime; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly trusted?: boolean | undefined;
}

type Found = Pick<DiscoveredAgents, "paths" | "settings" | "plugins">;
type Place = Required<Pick<RuntimeSetup, "cwd" | "home" | "environment" | "platform">>;

export function createRuntimeSource(options: RuntimeSetup): RuntimeSource {
  const home = options.home ?? findHome(process.env);
  folders.checkHome(home);
  const place: Place = {
    cwd: options.cwd === undefined ? folders.findWorkingFolder() : resolve(options.cwd),
    home,
    environment: withHome(options.environment ?? process.env, home),
    platform: options.platform ?? process.platform,
  };
  const clock = options.clock ?? { now: performance.now.bind(performance), sleep };
  const additionalDirectories = (options.additionalDirectories ?? []).map((folder) =>
    resolve(place.cwd, folder),
  );
  return openSource({
    options,
    place,
    clock,
    additionalDirectories,
    registered: new Map((options.agents ?? []).map(toDefinition).map((agent) => [agent.name, agent])),
    coolDowns: createCoolDowns(clock, Math.random),
    gates: createRequestGates(),
    sandbox: createSandboxRuntime(),
    wall: createWall({ platform: place.platform }),
    openTeam: createTeamStores(),
    readSkills: createSkillSource(options, additionalDirectories),
    findServers: createServerSearch(),
    connections: createConnections(),
  });
}

function openSource(shared: Shared): RuntimeSource {
  const { options, place } = shared;
  const agents = createAgentSearch(shared);
  return {
    async gather() {
      await folders.checkWorkingFolder(place.cwd);
      return contextOf(shared, await agents.discover());
    },
    async loadRegistry() {
      await folders.checkWorkingFolder(place.cwd);
      const { discovered } = await agents.discover();
      return { discovered };
    },
    register: agents.register,
    unregister: agents.unregister,
    at({ cwd, env, trusted }) {
      const own = cwd === undefined ? place.cwd : resolve(place.cwd, cwd);
      const { trusted: given, ...same } = options;
      // What the program set for its own folder does not hold for another one.
      const trust = trusted ?? (own === place.cwd ? given : undefined);
      const environment = withHome({ ...place.environment, ...env }, place.home);
      const moved = { ...same, ...(trust === undefined ? {} : { trusted: trust }) };
      return openSource({ ...shared, options: moved, place: { ...place, cwd: own, environment } });
    },
    async [Symbol.asyncDispose]() {
      shared.connections[Symbol.dispose]();
      await shared.sandbox[Symbol.asyncDispose]();
    },
  };
}

/** What is made once and shared between sessions. */
interface Shared {
  readonly options: RuntimeSetup;
  readonly place: Place;
  readonly clock: SharedResources["clock"];
  readonly additionalDirectories: readonly string[];
  readonly coolDowns: ReturnType<typeof createCoolDowns>;
  readonly gates: ReturnType<typeof createRequestGates>;
  readonly sandbox: ReturnType<typeof createSandboxRuntime>;
  readonly wall: ReturnType<typeof createWall>;
  readonly readSkills: (found: Found, touchedDirectories?: readonly string[]) => Promise<SkillCatalog>;
  readonly findServers: (environment: FolderContext["environment"]) => Promise<readonly LocalServer[]>;
  readonly openTeam: OpenTeam;
  /** Agents of the program, by name. */
  readonly registered: Map<string, AgentDefinition>;
  readonly connections: ReturnType<typeof createConnections>;
}

interface Discovery {
  /** As in the files. */
  readonly found: DiscoveredAgents;
  /** As far as it counts for this runtime. */
  readonly discovered: DiscoveredAgents;
  readonly trusted: boolean;
  /** Why a folder that was trusted is not: its files are others than its lock says. */
  readonly changed?: string | undefined;
}

/** The agents of the files and of the program; the files are searched once and checked for changes at each use. */
function createAgentSearch(shared: Shared): Pick<RuntimeSource, "register" | "unregister"> & {
  discover(): Promise<Discovery>;
} {
  const { options, place, registered } = shared;
  let searching:
    | Promise<Pick<Discovery, "trusted" | "changed"> & { readonly catalog: AgentCatalog }>
    | undefined;

  async function search() {
    await folders.checkFolders(options, place.cwd);
    const { environment: env, ...same } = place;
    const answer =
      options.trusted === undefined
        ? await findTrust({ ...same, env }, { isSession: true })
        : { trusted: options.trusted };
    const { trusted } = answer;
    const changed = "changed" in answer ? answer.changed : undefined;
    const guide = async (found: Found) => {
      const [skills, servers] = await Promise.all([
        shared.readSkills(found),
        readServers(shared, found, { trusted }),
      ]);
      return {
        skills: skills.list().map(({ name, description }) => `${name}: ${description}`),
        // Names and kinds, never what else is in their configuration.
        mcpServers: [
          ...servers.servers.map(({ name, scope, transport }) => `${name} (${scope}, ${transport.type})`),
          ...servers.held
            .filter(({ code }) => !["shadowed", "name-refused", "untrusted"].includes(code))
            .map(({ entry, reason }) => `${entry.config.name} (${entry.scope}; not connected: ${reason})`),
        ],
      };
    };
    const catalog = createAgentCatalog({ ...options, ...place, trusted, agents: [], guide });
    return { trusted, changed, catalog };
  }

  return {
    async discover() {
      searching ??= search();
      const { catalog, trusted, changed } = await searching.catch((error: unknown) => {
        searching = undefined;
        throw error;
      });
      for (const agent of registered.values()) catalog.register(agent);
      const read = await catalog.read();
      const { transcripts } = options;
      // With the folder of transcripts that the program has chosen.
      const found =
        typeof transcripts === "string" ? { ...read, paths: { ...read.paths, transcripts } } : read;
      const discovered = options.restrictionsOnly === true ? restrictionsOnly(found) : found;
      return { found, discovered, trusted, changed };
    },
    register(agent) {
      const definition = toDefinition(agent);
      registered.set(definition.name, definition);
    },
    unregister(name) {
      registered.delete(name);
      // A failed search is reported to the next caller that needs the agents.
      searching?.then(({ catalog }) => catalog.unregister(name)).catch(() => undefined);
    },
  };
}

/** The code that reads skills is loaded when they are first needed. */
function createSkillSource(
  { settingSources }: RuntimeSetup,
  additionalDirectories: readonly string[],
): Shared["readSkills"] {
  let reader: Promise<SkillReader> | undefined;
  return async ({ paths, settings, plugins }, touchedDirectories = []) => {
    reader ??= import("@retinue/config/skills/skill-catalog.ts").then(({ createSkillReader }) =>
      createSkillReader(),
    );
    return (await reader).read({
      paths,
      plugins,
      settings: settings.settings.plain,
      additionalDirectories,
      touchedDirectories,
      settingSources,
    });
  };
}

/** This runtime's shares in the connections of the process, each taken with the first model that needs it. */
function createConnections(): Disposable & Required<Pick<ModelFactoryOptions, "fetch">> {
  const shares = new Map<string, ReturnType<typeof holdConnections>>();
  let isOpen = true;
  return {
    fetch(proxies) {
      const key = JSON.stringify(proxies ?? null);
      const share = shares.get(key) ?? holdConnections(proxies);
      shares.set(key, share);
      if (!isOpen) share[Symbol.dispose]();
      return share.fetch;
    },
    [Symbol.dispose]() {
      isOpen = false;
      for (const share of shares.values()) share[Symbol.dispose]();
    },
  };
}

/** Searched once for the same places; a server that is started later is seen by the next program. */
function createServerSearch(): Shared["findServers"] {
  const searches = new Map<string, Promise<readonly LocalServer[]>>();
  return async (environment) => {
    const [{ localPlaces }, { findLocalServers }] = await Promise.all([
      import("../models/local-models.ts"),
      import("../models/find-local-servers.ts"),
    ]);
    const places = localPlaces(environment);
    const key = places.map(({ address }) => address).join(" ");
    const searched = searches.get(key) ?? findLocalServers(places);
    searches.set(key, searched);
    return searched;
  };
}

async function readServers(
  { options, place }: Shared,
  discovered: Found,
  { trusted, ask }: Pick<GatherMcpOptions, "trusted" | "ask">,
): Promise<GatheredMcp> {
  const { gatherMcpServers } = await import("./servers/gather-mcp-servers.ts");
  const { mcpServers, mcpConfig, strictMcpConfig } = options;
  const settingSources = options.restrictionsOnly === true ? [] : options.settingSources;
  return gatherMcpServers({
    discovered,
    trusted,
    environment: environmentOf(place, discovered),
    mcpServers,
    mcpConfig,
    strictMcpConfig,
    settingSources,
    ask,
  });
}

function environmentOf(place: Place, { settings: { settings } }: Found): FolderContext["environment"] {
  const { bashOutputMaxChars } = settings.plain;
  return {
    // The setting counts where the variable is not set.
    ...(bashOutputMaxChars === undefined ? {} : { BASH_MAX_OUTPUT_LENGTH: String(bashOutputMaxChars) }),
    ...place.environment,
    ...Object.fromEntries(settings.env),
  };
}

function contextOf(shared: Shared, { found, discovered, trusted, changed }: Discovery): RuntimeContext {
  const { options, place, clock, additionalDirectories, sandbox, wall } = shared;
  const { plain } = discovered.settings.settings;
  const whole = environmentOf(place, discovered);
  const { environment, ...questions } = readApprovals(options.approvals, plain.approvals, whole);
  const variables = readEnvironment(environment).options;
  const quotas = quotasOf(shared, discovered, environment);
  const teams = readTeamSettings({ option: options.teams, environment, variables, settings: plain });
  const { settings, mcpConfig = [], pluginDirectories = [] } = options;
  // What is not JSON itself is the path of a file.
  const named = [settings ?? "", ...mcpConfig].filter((text) => text !== "" && !/^\s*[{[]/.test(text));
  const optionFiles = [...named, ...pluginDirectories];
  const folder: FolderContext = {
    discovered,
    skills: (nestedFolders) => shared.readSkills(found, nestedFolders),
    servers: (ask) => readServers(shared, discovered, { trusted, ask }),
    trusted,
    changed,
    settingSources: options.settingSources,
    environment,
    variables,
    platform: place.platform,
    additionalDirectories,
    optionFiles: optionFiles.map((path) => resolve(place.cwd, path)),
    ...questions,
  };
  const resources: SharedResources = {
    models: modelsOf(shared, { plain, environment, trusted, quotas }),
    quotas,
    localServers: async () => (variables.localModels === false ? [] : shared.findServers(environment)),
    sandbox,
    wall,
    ...(teams === undefined ? {} : { teams: { ...teams, open: shared.openTeam } }),
    clock,
    now: clock.now,
  };
  // What a program supplied, as it is. Besides objects, its servers may be given as configuration.
  const program: ProgramParts = {
    model: options.model,
    ...(options.wrapModel === undefined ? {} : { wrapsModels: true }),
    extraTools: options.extraTools ?? [],
    programServers: new Map(
      Object.entries(options.mcpServers ?? {}).flatMap(([name, server]) => {
        const instance = isRecord(server) && server["type"] === "sdk" ? server["instance"] : undefined;
        return isProgramServer(instance) ? [[name, instance] as const] : [];
      }),
    ),
    disallowedTools: options.disallowedTools ?? [],
    host: options.host ?? {},
    canUseTool: options.canUseTool,
    approver: options.approver === undefined ? undefined : withEarlierNames(options.approver),
    hooks: options.hooks ?? [],
    portable: options.portable,
  };
  const isKept =
    options.transcripts === undefined
      ? variables.promptHistorySkipped !== true
      : options.transcripts !== false;
  return {
    ...folder,
    ...resources,
    ...program,
    wrapExecutor: options.wrapExecutor,
    wrapPlan: options.wrapPlan,
    idempotencyKey: options.idempotencyKey,
    live: options.live,
    notice: options.notice,
    keepsTranscripts: isKept,
    durability: options.durability ?? plain.durability ?? "sync",
    entrypoint: options.entrypoint ?? "sdk-ts",
    ids: { uuid: randomUUID },
    epochMs: Date.now,
  };
}

function modelsOf(
  { options, place, connections, coolDowns, gates, clock }: Shared,
  {
    plain,
    environment,
    trusted,
    quotas,
  }: Pick<RuntimeContext, "environment" | "trusted" | "quotas"> & { readonly plain: PlainSettings },
): SharedResources["models"] {
  const helper = plain.apiKeyHelper;
  const { wrapModel: wrap = options.live?.gatherText } = options;
  return createModelFactory({
    wrap,
    environment,
    settings: plain,
    apiKeyHelper:
      helper === undefined ? undefined : () => runKeyHelper(helper, { environment, directory: place.cwd }),
    timeouts: readModelClocks(plain.limits, readEnvironment(environment).options.apiTimeoutMs),
    // A package of the project is the project's code, so it is loaded only where that may run.
    async load(name) {
      const { createPackageLoader } = await import("../models/create-package-loader.ts");
      return createPackageLoader(trusted ? [place.cwd] : [])(name);
    },
    fetch: connections.fetch,
    coolDowns,
    gates,
    quotas,
    clock,
    random: Math.random,
  });
}

/** Only where settings let agents wait for a used-up quota. */
function quotasOf(
  { options, clock }: Shared,
  { paths, settings }: Found,
  environment: FolderContext["environment"],
): SharedResources["quotas"] {
  const { quota, apiKeyHelper } = settings.settings.plain;
  if (quota?.wait !== true) return undefined;
  // A program that gives a clock of its own lets the time of day pass with it.
  const startedAt = Date.now() - clock.now();
  return createQuotaWindows({
    directory: join(paths.configDirectory, "quota"),
    accountOf: (provider) => accountOf(provider, environment, apiKeyHelper),
    clock,
    now: options.clock === undefined ? Date.now : () => startedAt + clock.now(),
  });
}

function isProgramServer(value: unknown): value is ProgramServer {
  return isRecord(value) && typeof value["connect"] === "function";
}

function toDefinition(agent: AgentDefinition | AgentInput): AgentDefinition {
  return typeof agent === "object" && agent !== null && "written" in agent ? agent : defineAgent(agent);
}

const timeLimitMs = 10_000;

/** Runs the command that settings name for getting a key; what it prints is the key. */
async function runKeyHelper(
  command: string,
  options: { readonly environment: Readonly<Record<string, string | undefined>>; readonly directory: string },
): Promise<string> {
  const result = await runProcess({
    file: "/bin/sh",
    arguments: ["-c", command],
    directory: options.directory,
    environment: Object.fromEntries(
      Object.entries(options.environment).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    ),
    signal: AbortSignal.timeout(timeLimitMs),
    maxBytes: 10_000,
  });
  const key = result.stdout.trim();
  if (result.exitCode === 0 && key !== "") return key;
  throw new RetinueError(
    "key-helper-failed",
    `The command of the setting apiKeyHelper printed no key (exit ${result.exitCode ?? "by signal"}).`,
    {
      advice: "Run it by hand; it must print the key and nothing else.",
    },
  );
}

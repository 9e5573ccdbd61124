import { abortable } from "@retinue/base/foundation/abortable.ts";
import { type Diagnostic, type Issue, plural } from "@retinue/base/foundation/diagnostic.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import { findKeychain } from "@retinue/base/storage/find-keychain.ts";
import { variablesIn } from "@retinue/config/mcp/expand-variables.ts";
import { mcpDefinitionHash } from "@retinue/config/mcp/mcp-definition-hash.ts";
import { readServer } from "@retinue/config/mcp/mcp-server-config.ts";
import type { McpServer, McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import { refuseServerName } from "@retinue/config/mcp/refuse-server-name.ts";
import {
  addMcpServer,
  removeMcpServer,
  type WritableScope,
  writableScopes,
} from "@retinue/config/settings/add-mcp-server.ts";
import {
  approveMcpServers,
  forgetMcpChoices,
  rejectMcpServers,
} from "@retinue/config/settings/approve-mcp-servers.ts";
import { chooseMcpServers, type HeldServer } from "@retinue/config/settings/choose-mcp-servers.ts";
import type { McpEntry } from "@retinue/config/settings/load-mcp-entries.ts";
import { hideInAddress } from "../../mcp/hide-secrets.ts";
import type { McpStatus } from "../../mcp/mcp-connections.ts";
import {
  type CredentialStore,
  createCredentialStore,
  credentialKey,
  type HttpTransport,
  type McpTokens,
} from "../../mcp/oauth/credential-store.ts";
import { mcpConnectionOptions } from "../servers/mcp-connection-options.ts";
import type { ProjectFacts } from "./project-facts.ts";

export type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
export type { WritableScope } from "@retinue/config/settings/add-mcp-server.ts";
export type { HeldServer } from "@retinue/config/settings/choose-mcp-servers.ts";
export { hideInAddress } from "../../mcp/hide-secrets.ts";
export type { McpStatus } from "../../mcp/mcp-connections.ts";

/** What would become of a server: `connects` says what `retinue -p` does, `asks` that a person would be asked first. */
export interface ListedServer {
  readonly entry: McpEntry;
  readonly connects: boolean;
  readonly asks: boolean;
  readonly held?: HeldServer;
  /** How it did, where it was tried. */
  readonly status?: McpStatus;
  /** The login that is kept for it. */
  readonly login?: McpLogin;
}

/** A person's login at a server, without its secrets. */
export interface McpLogin {
  readonly issuer: string;
  readonly scope?: string;
  /** Milliseconds since 1970; absent where the server did not say. */
  readonly expiresAt?: number;
  /** Whether it is renewed without the person. */
  readonly renews: boolean;
}

/** How a person is taken to a login and back. */
export interface McpLoginOptions {
  /** Opens or shows the address. */
  readonly visit: (address: string) => void | Promise<void>;
  /** The address the browser ended at, or the code in it; absent: only the browser comes back. */
  readonly paste?: (signal: AbortSignal) => Promise<string>;
  /** Scopes to ask for, separated by spaces; what configuration and server name when left out. */
  readonly scope?: string;
  readonly signal?: AbortSignal;
}

/** A server with what its configuration reads and reaches. */
export interface ServerDetails extends ListedServer {
  /** Names of the variables that its configuration refers to. */
  readonly reads: readonly string[];
  /** Its address without what may be secret, where it has one. */
  readonly address?: string;
}

export interface McpOverview {
  readonly servers: readonly ListedServer[];
  readonly diagnostics: readonly Diagnostic[];
  /** The value of `mcpConfig` that cannot be used. */
  readonly brokenConfig?: Diagnostic;
  readonly trusted: boolean;
}

/** The MCP servers of a folder: which there are, and what people say about them. */
export interface ProjectMcp {
  /**
   * Every configured server. With `check` those that a run would connect are connected, and ended again; `approved` leaves out
   * those of the project that were not approved by name, `remote` these and all that are programs of this machine.
   */
  list(options?: {
    readonly check?: boolean | "approved" | "remote";
    readonly signal?: AbortSignal;
  }): Promise<McpOverview>;
  /** All servers of a name, the one that counts first. */
  get(
    name: string,
    options?: { readonly check?: boolean; readonly signal?: AbortSignal },
  ): Promise<{ readonly servers: readonly ServerDetails[] } & McpOverview>;
  /** Writes a server to the file of a scope, and returns that file. Starts nothing. */
  add(server: NewServer): Promise<string>;
  /** Takes a server out of the first file that has it. */
  remove(
    name: string,
    options?: { readonly scope?: WritableScope },
  ): Promise<{ readonly file: string; readonly scope: WritableScope }>;
  /** Lets servers of the project start as they are written now: one, or all. */
  approve(name?: string): Promise<{ readonly names: readonly string[]; readonly trusted: boolean }>;
  /** Keeps a server of the project from starting. */
  reject(name: string): Promise<void>;
  /** Forgets what was approved and rejected. */
  resetChoices(): Promise<void>;
  /** Logs a person in at a server that may be connected. */
  login(name: string, options: McpLoginOptions): Promise<McpLogin>;
  /** Forgets a login, and has the authorization server end it where it can. */
  logout(name: string): Promise<{ readonly wasLoggedIn: boolean }>;
}

export interface NewServer {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** `local` when left out. */
  readonly scope?: WritableScope;
  /** Whether a server of the same name is replaced. */
  readonly replaces?: boolean;
  /** What is advised when the configuration cannot be used. */
  readonly usage?: string;
  /** How a path is shown; as it is when left out. */
  readonly pathText?: (file: string) => string;
}

export function projectMcp(gather: () => Promise<ProjectFacts>): ProjectMcp {
  const list: ProjectMcp["list"] = async ({ check = false, signal = new AbortController().signal } = {}) => {
    const facts = await gather();
    const overview = await listServers(facts);
    if (check === false) return overview;
    const which = check === true ? "all" : check;
    return { ...overview, servers: await withStates(overview.servers, facts, { check: which, signal }) };
  };
  return {
    list,
    async get(name, { check = false, signal = new AbortController().signal } = {}) {
      const facts = await gather();
      const overview = await listServers(facts);
      const found = findNamed(overview.servers, name);
      const servers = check ? await withStates(found, facts, { check: "approved", signal }) : found;
      return { ...overview, servers: servers.map(detailsOf) };
    },
    add: async (server) => addServer(await gather(), server),
    remove: async (name, { scope } = {}) => removeServer(await gather(), name, scope),
    approve: async (name) => approve(await gather(), name),
    reject: async (name) => reject(await gather(), name),
    async resetChoices() {
      const { discovered } = await gather();
      orError(await forgetMcpChoices(discovered.paths));
    },
    login: async (name, options) => logInAt(await gather(), name, options),
    logout: async (name) => logOutOf(await gather(), name),
  };
}

async function listServers(facts: ProjectFacts): Promise<McpOverview> {
  const gathered = await facts.servers();
  const attended = chooseMcpServers(gathered.entries, { ...gathered.facts, attended: true });
  const store = credentialsOf(facts);
  const logins = new Map<string, McpLogin>();
  for (const { name, transport } of gathered.servers) {
    if (!isRemote(transport) || !URL.canParse(transport.url)) continue;
    const kept = await store.read(credentialKey(transport));
    if (kept?.tokens !== undefined) logins.set(name, loginOf(kept.issuer, kept.tokens));
  }
  const servers = gathered.entries.map((entry): ListedServer => {
    const held = gathered.held.find((each) => each.entry === entry);
    const login = held === undefined ? logins.get(entry.config.name) : undefined;
    return {
      entry,
      connects: held === undefined,
      asks: attended.asked.some((each) => each.entry === entry),
      held,
      login,
    };
  });
  return {
    servers,
    diagnostics: gathered.diagnostics,
    brokenConfig: gathered.brokenConfig,
    trusted: gathered.facts.trusted,
  };
}

function credentialsOf({ environment, discovered }: ProjectFacts): CredentialStore {
  return createCredentialStore(
    discovered.paths.configDirectory,
    findKeychain({ service: "retinue-mcp", environment }),
  );
}

function loginOf(issuer: string, { scope, expiresAt, refreshToken }: McpTokens): McpLogin {
  return {
    issuer,
    scope,
    expiresAt,
    renews: refreshToken !== undefined,
  };
}

function isRemote(transport: McpTransport): transport is HttpTransport {
  return transport.type === "http" || transport.type === "sse";
}

/** A login identifies the person to a server, so it is made only where a run would connect without a question. */
async function logInAt(facts: ProjectFacts, name: string, options: McpLoginOptions): Promise<McpLogin> {
  const found = findNamed((await listUsable(facts)).servers, name);
  const listed = found.find(({ connects }) => connects) ?? found[0];
  if (listed?.held !== undefined) {
    const { reason, advice } = listed.held;
    throw new RetinueError("mcp-login-failed", `\`${name}\` is not connected here: ${reason}.`, { advice });
  }
  if (listed?.asks === true)
    throw new RetinueError(
      "mcp-login-failed",
      `The server \`${name}\` of the project has not been approved.`,
      {
        advice: `Run \`retinue mcp approve ${shellWord(name)}\` first.`,
      },
    );
  const { servers } = await facts.servers();
  const transport = servers.find((server) => server.name === name)?.transport;
  if (transport === undefined || !isRemote(transport))
    throw misuse(`\`${name}\` is not an HTTP server, so it has no login.`);
  if (transport.oauth?.grant === "client_credentials")
    throw misuse(`\`${name}\` logs in automatically with its client credentials.`);
  const { logIn } = await import("../../mcp/oauth/log-in.ts");
  const secret = transport.oauth?.clientId === undefined ? undefined : facts.environment["MCP_CLIENT_SECRET"];
  return logIn(name, transport, {
    ...options,
    clientSecret: secret,
    store: credentialsOf(facts),
    signal: options.signal ?? new AbortController().signal,
  });
}

/** Also where the server is held back by now. */
async function logOutOf(facts: ProjectFacts, name: string): Promise<{ readonly wasLoggedIn: boolean }> {
  const [listed] = findNamed((await listUsable(facts)).servers, name);
  const { servers } = await facts.servers();
  const transport =
    servers.find((server) => server.name === name)?.transport ?? listed?.entry.config.transport;
  if (transport === undefined || !isRemote(transport) || !URL.canParse(transport.url))
    throw misuse(`\`${name}\` is not an HTTP server, so it has no login to forget.`);
  const { logOut } = await import("../../mcp/oauth/log-in.ts");
  return { wasLoggedIn: await logOut(transport, credentialsOf(facts)) };
}

/** Connects those of the servers that a run would connect, to see how each is doing, and ends them again. */
async function withStates(
  listed: readonly ListedServer[],
  { servers: gather, environment, discovered }: ProjectFacts,
  { check, signal }: { readonly check: "all" | "approved" | "remote"; readonly signal: AbortSignal },
): Promise<readonly ListedServer[]> {
  const tried = listed.filter(
    ({ connects, asks, entry: { config } }) =>
      connects &&
      (check === "all" || !asks) &&
      (check !== "remote" || (config.transport !== undefined && isRemote(config.transport))),
  );
  const servers = (await gather()).servers.filter((server) => tried.some((each) => isOf(each, server)));
  if (servers.length === 0) return listed;
  const { connectServers } = await import("../../mcp/connect-servers.ts");
  const { timeoutMs: _patience, ...options } = mcpConnectionOptions({
    environment,
    directory: discovered.paths.cwd,
    configDirectory: discovered.paths.configDirectory,
  });
  await using connections = connectServers(servers, options);
  await abortable(connections.ready, signal);
  const states = connections.states();
  return listed.map((each) => {
    const state = tried.includes(each) ? states.find(({ server }) => isOf(each, server)) : undefined;
    return state === undefined ? each : { ...each, status: state.status };
  });
}

function isOf({ entry }: ListedServer, { name, scope }: McpServer): boolean {
  return name === entry.config.name && scope === entry.scope;
}

function findNamed(servers: readonly ListedServer[], name: string): readonly ListedServer[] {
  const found = servers.filter(({ entry }) => entry.config.name === name);
  if (found.length > 0) return found;
  const names = [...new Set(servers.map(({ entry }) => entry.config.name))];
  const nearest = nearestName(name, names);
  const known = names.length === 0 ? "No MCP server is configured here." : `There are ${names.join(", ")}.`;
  throw new RetinueError("unknown-mcp-server", `There is no MCP server \`${name}\`.`, {
    advice: nearest === undefined ? known : `Did you mean \`${nearest}\`?`,
  });
}

function detailsOf(server: ListedServer): ServerDetails {
  const { transport } = server.entry.config;
  const texts = transport === undefined ? [] : textsOf(transport);
  const url = transport !== undefined && "url" in transport ? transport.url : undefined;
  return {
    ...server,
    reads: [...new Set(texts.flatMap(variablesIn))],
    ...(url === undefined ? {} : { address: hideInAddress(url) }),
  };
}

function textsOf(transport: McpTransport): readonly string[] {
  if (transport.type === "sdk") return [];
  return transport.type === "stdio"
    ? [transport.command, ...transport.args, ...Object.values(transport.env)]
    : [transport.url, ...Object.values(transport.headers)];
}

async function addServer(
  { discovered }: ProjectFacts,
  { name, config, scope = "local", replaces = false, usage, pathText = (file) => file }: NewServer,
): Promise<string> {
  refuseName(name);
  const issues: Issue[] = [];
  const { unusable } = readServer(name, config, [], issues);
  if (unusable !== undefined) throw misuse(`The server cannot be used: ${unusable}.`, usage);
  const [issue] = issues;
  if (issue !== undefined) throw misuse(issue.message, issue.advice);
  const outcome = await addMcpServer(discovered.paths, { scope, name, config }, { replaces });
  if (outcome.type === "exists")
    throw new RetinueError(
      "mcp-server-exists",
      `${pathText(outcome.file)} already has a server \`${name}\`.`,
      {
        advice: "Choose another name, or replace it with --force.",
      },
    );
  return orError(outcome).files[0] ?? "";
}

/** Says why a name cannot be the name of a server. */
export function refuseName(name: string): void {
  const why = /^plugin:/i.test(name)
    ? "names that begin with `plugin:` are reserved for plugins' servers"
    : refuseServerName(name);
  if (why === undefined) return;
  throw misuse(
    `${JSON.stringify(name)} cannot be the name of a server: ${why}.`,
    "Use letters, digits and hyphens.",
  );
}

async function removeServer(
  { discovered }: ProjectFacts,
  name: string,
  wanted: WritableScope | undefined,
): Promise<{ readonly file: string; readonly scope: WritableScope }> {
  for (const scope of wanted === undefined ? writableScopes : [wanted]) {
    const outcome = await removeMcpServer(discovered.paths, { scope, name });
    if (outcome.type === "absent") continue;
    return { file: orError(outcome).files[0] ?? "", scope };
  }
  const where = wanted === undefined ? "No writable file here" : `No file of the scope ${wanted}`;
  throw new RetinueError("unknown-mcp-server", `${where} has an MCP server \`${name}\`.`, {
    advice: "`retinue mcp list` shows where each is; change servers of plugins and settings in their files.",
  });
}

async function approve(facts: ProjectFacts, name: string | undefined) {
  const { servers, trusted } = await listUsable(facts);
  const chosen = chooseServers(servers, name);
  const outcome = await approveMcpServers(
    facts.discovered.paths,
    chosen.map(({ entry }) => ({ name: entry.config.name, hash: mcpDefinitionHash(entry.config.written) })),
  );
  orError(outcome);
  return { names: chosen.map(({ entry }) => entry.config.name), trusted };
}

async function reject(facts: ProjectFacts, name: string): Promise<void> {
  const { servers } = await listUsable(facts);
  if (!findNamed(servers, name).some(({ entry }) => entry.fromRepository))
    throw misuse(
      `\`${name}\` does not come from the project.`,
      `\`retinue mcp remove ${name}\` removes it from its file.`,
    );
  orError(await rejectMcpServers(facts.discovered.paths, [name]));
}

async function listUsable(facts: ProjectFacts): Promise<McpOverview> {
  const overview = await listServers(facts);
  refuseBrokenConfig(overview);
  return overview;
}

/** What `--mcp-config` names must be usable before anything is reported about servers. */
export function refuseBrokenConfig({ brokenConfig }: Pick<McpOverview, "brokenConfig">): void {
  if (brokenConfig !== undefined)
    throw misuse(`--mcp-config cannot be used: ${brokenConfig.message}`, brokenConfig.advice);
}

/** Of two project files with the same name, the nearer one is the one that would be started. */
function chooseServers(servers: readonly ListedServer[], name: string | undefined): readonly ListedServer[] {
  const fromProject = servers.filter(({ entry }) => entry.fromRepository);
  if (name === undefined) {
    if (fromProject.length === 0)
      throw new RetinueError("unknown-mcp-server", "The project has no MCP servers, so none needs approval.");
    const names = new Set(fromProject.map(({ entry }) => entry.config.name));
    return [...names].flatMap((each) => fromProject.find(({ entry }) => entry.config.name === each) ?? []);
  }
  const own = fromProject.filter(({ entry }) => entry.config.name === name);
  if (own.length > 0) return own.slice(0, 1);
  findNamed(servers, name);
  throw misuse(`\`${name}\` does not come from the project, so it needs no approval.`);
}

function misuse(message: string, advice?: string): RetinueError {
  return new RetinueError("misuse", message, advice === undefined ? {} : { advice });
}

function orError<Outcome extends { readonly type: string }>(
  outcome: Outcome,
): Exclude<Outcome, { readonly type: "refused" }> {
  if (isRefused(outcome)) throw new RetinueError("not-written", `Nothing was changed: ${outcome.why}.`);
  // What is left after the check above.
  return outcome as Exclude<Outcome, { readonly type: "refused" }>;
}

function isRefused(outcome: {
  readonly type: string;
}): outcome is { readonly type: "refused"; readonly why: string } {
  return outcome.type === "refused";
}

/** What an attempt to connect came to, in a few words; the reason of a failure is reported elsewhere, as it may be long. */
export function toolCount(status: McpStatus): string {
  return status.type === "connected" ? plural(status.tools, "tool") : "failed";
}

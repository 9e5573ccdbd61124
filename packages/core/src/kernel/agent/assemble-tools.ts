// @io
import { randomBytes } from "node:crypto";
import { type Stats, statSync } from "node:fs";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type ToolName, toolTable } from "@retinue/base/foundation/tool-table.ts";
import { createTemporaryNotes } from "@retinue/base/storage/create-temporary-notes.ts";
import { makeMemoryDirectory } from "@retinue/config/instructions/make-memory-directory.ts";
import type { ToolSearchMode } from "@retinue/config/settings/read-environment.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import { type AvailableTool, availableTool } from "@retinue/config/tools/match-tools.ts";
import { parseToolEntry } from "@retinue/config/tools/tool-entry.ts";
import { createCopyFinder } from "@retinue/gate/create-copy-finder.ts";
import { decide } from "@retinue/gate/decide.ts";
import { literalPath } from "@retinue/gate/gather-path-facts.ts";
import { isInside, type PolicyRule, type ToolScopes } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { outputFolder } from "../../journal/session-files.ts";
import type { ModelFacts, ServerTool } from "../../models/model.ts";
import { type AgentPlan, agentPath, type PlannedDefinition } from "../../planning/agent-plan.ts";
import { webSearchName } from "../../planning/plan-tools.ts";
import {
  createBuiltinTools,
  createTodoStore,
  type TodoStore,
} from "../../tools/builtin/create-builtin-tools.ts";
import type { Sandboxes } from "../../tools/builtin/enter-sandbox.ts";
import { createShellDirectories } from "../../tools/builtin/shell-directories.ts";
import { webSearchServerTool } from "../../tools/builtin/web/web-search-server-tool.ts";
import { createShells, type Shells } from "../../tools/command/shells.ts";
import {
  createToolSearch,
  type ToolSearch,
  takesMore,
  toolSearchName,
} from "../../tools/create-tool-search.ts";
import { createSessionFiles, createWriteInTurn, type FileLedger } from "../../tools/file-ledger.ts";
import { createSandbox } from "../../tools/sandbox/sandbox.ts";
import { readSandboxSettings } from "../../tools/sandbox/sandbox-settings.ts";
import { wallRules } from "../../tools/sandbox/wall-rules.ts";
import type { TaskSource, TaskView } from "../../tools/task-source.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import { askingTool } from "../approvals/answer-question.ts";
import { outputToolName } from "../options/typed-output.ts";
import type { FolderContext, RuntimeContext } from "../runtime-context.ts";
import type { SessionServers } from "../servers/session-servers.ts";
import type { SessionCommands } from "../session-commands.ts";
import type { SessionPorts } from "../session-ports.ts";

export interface AssembledTools {
  readonly tools: readonly Tool[];
  /** What a plan may grant: the tools, and those the provider runs itself. */
  readonly available: readonly AvailableTool[];
  /** The tools that a run's provider runs itself, as far as its plan grants them. */
  readonly serverTools: (plan: Pick<AgentPlan, "tools">, facts: ModelFacts) => readonly ServerTool[];
  /** The folder an agent's last command ended in. */
  readonly directory: (agentId: string) => string | undefined;
  /** An agent's own list of steps. */
  readonly todos: TodoStore["read"];
  /** Ends what one agent has left running. */
  readonly release: (agentId: string) => Promise<void>;
  /** The commands of the session that run or have run in the background. */
  readonly commands: () => readonly TaskView[];
  /** Moves the commands that an agent waits for to the background; returns their descriptions. */
  readonly moveCommands: (agentId: string) => readonly string[];
  /** Ends what is still running in the background. */
  readonly dispose: () => Promise<void>;
}

interface ToolParts {
  readonly servers?: Pick<SessionServers, "tools" | "resourceTools" | "planned"> | undefined;
  /** The tool that answers in a person's place; agents do not have it. */
  readonly promptTool?: string | undefined;
  readonly sandboxes?: Sandboxes;
  readonly taskSources?: readonly TaskSource[];
  /** Whether there are skills that a model may call; each agent has a Skill tool of its own. */
  readonly hasSkills?: boolean;
  /** Whether there are workflows; the main agent has a tool of its own for them. */
  readonly hasWorkflows?: boolean;
  readonly commands?: Pick<SessionCommands, "records" | "earlier">;
  /** When the tools of servers are loaded on demand; absent: never. */
  readonly deferral?: DeferralFacts;
}

/** Makes the tools of one session; background shells belong to it and end with it. */
export function assembleTools(
  runtime: Pick<RuntimeContext, "approvals" | "extraTools" | "host" | "now" | "teams" | "live">,
  {
    sandboxes = {},
    taskSources = [],
    hasSkills = false,
    hasWorkflows = false,
    servers,
    promptTool,
    commands,
    deferral,
  }: ToolParts = {},
): AssembledTools {
  checkExtraTools(runtime.extraTools);
  const { commandChanged } = runtime.live ?? {};
  const changed =
    commandChanged === undefined
      ? undefined
      : (view: TaskView): void => commandChanged(view, () => shells.stop(view.id));
  const shells: Shells = createShells({
    newId: () => randomBytes(4).toString("hex"),
    now: runtime.now,
    ...commands,
    ...(changed === undefined ? {} : { onStarted: changed, onEnded: changed }),
  });
  const directories = createShellDirectories();
  const todos = createTodoStore();
  const replaced = new Set(runtime.extraTools.map(({ name }) => name));
  const taskList = runtime.teams === undefined ? (runtime.live?.taskList ?? []) : [];
  const builtin = createBuiltinTools({
    shells,
    directories,
    now: runtime.now,
    todos,
    taskSources,
    bash: sandboxes,
  })
    .filter(({ name }) => !replaced.has(name))
    .filter((tool) => canBeAnswered(tool, runtime));
  const fromServers = (servers?.tools ?? []).filter(({ name }) => !replaced.has(name) && name !== promptTool);
  const reading = (servers?.resourceTools() ?? []).filter(({ name }) => !replaced.has(name));
  const own = [...builtin, ...taskList.filter(({ name }) => !replaced.has(name)), ...runtime.extraTools];
  const isProviders = !replaced.has(webSearchName);
  return {
    tools: [...own, ...fromServers],
    available: availableTools({
      own,
      fromServers: [...fromServers, ...reading],
      replaced,
      hasSkills,
      hasWorkflows,
      hasTeams: runtime.teams !== undefined,
      hasSearch: deferral !== undefined && areDeferred(fromServers, deferral),
      planned: servers?.planned ?? [],
    }),
    serverTools({ tools }, facts) {
      const isGranted = isProviders && tools.some(({ name }) => name === webSearchName);
      const search = isGranted ? webSearchServerTool(facts) : undefined;
      return search === undefined ? [] : [search];
    },
    directory: directories.of,
    todos: todos.read,
    release: shells.stopOwned,
    commands: shells.list,
    moveCommands: (agentId) => shells.moveToBackground(agentId).map(({ description }) => description),
    dispose: async () => shells[Symbol.asyncDispose](),
  };
}

/** A tool cannot ask where the program around it has no way to ask, and questions do not wait. */
function canBeAnswered(
  { effect, name }: Pick<Tool, "effect" | "name">,
  { host, approvals }: Pick<RuntimeContext, "host" | "approvals">,
): boolean {
  return effect !== "interact" || host.ask !== undefined || (approvals !== undefined && name === askingTool);
}

/** What a plan may grant; tools that each agent has of its own, and those of the provider, are only named here. */
function availableTools({
  own,
  fromServers,
  replaced,
  hasSkills,
  hasWorkflows,
  hasTeams,
  hasSearch,
  planned,
}: {
  readonly own: readonly Tool[];
  readonly fromServers: readonly Tool[];
  readonly replaced: ReadonlySet<string>;
  readonly hasSkills: boolean;
  readonly hasWorkflows: boolean;
  readonly hasTeams: boolean;
  readonly hasSearch: boolean;
  readonly planned: readonly AvailableTool[];
}): readonly AvailableTool[] {
  return [
    ...declaredTools(["Agent"]),
    ...(hasWorkflows ? declaredTools(["Workflow"], replaced) : []),
    ...declaredTools(["SendMessage", ...(hasSkills ? ["Skill" as const] : [])], replaced),
    ...(hasTeams
      ? declaredTools(teamTools, replaced).map((tool) => ({ ...tool, forTeams: true as const }))
      : []),
    ...own.map(availableTool),
    ...declaredTools([webSearchName, ...(hasSearch ? [toolSearchName] : [])], replaced),
    ...fromServers.map(availableTool),
    ...planned,
  ];
}

const teamTools: readonly ToolName[] = [
  "TeamCreate",
  "TeamDelete",
  "TaskCreate",
  "TaskUpdate",
  "TaskList",
  "TaskGet",
];

/** Tools as the table declares them, without those that a program has replaced. */
export function declaredTools(
  names: readonly ToolName[],
  replaced: ReadonlySet<string> = new Set(),
): readonly AvailableTool[] {
  return builtinTools
    .filter(({ name }) => names.includes(name) && !replaced.has(name))
    .map(({ description: _, ...facts }) => ({ ...facts, origin: "builtin" }));
}

/** Providers take only such names, and no name twice. */
function checkExtraTools(tools: readonly Tool[]): void {
  const seen = new Set<string>([outputToolName]);
  for (const { name } of tools) {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
      throw new RetinueError("invalid-tool", `${JSON.stringify(name)} cannot be the name of a tool.`, {
        advice: "Use up to 64 letters, digits, underscores and hyphens.",
      });
    }
    if (seen.has(name)) {
      throw new RetinueError("invalid-tool", `The name ${JSON.stringify(name)} is taken by another tool.`, {
        advice: "Give each tool a name of its own.",
      });
    }
    seen.add(name);
  }
}

/** Where settings ask for it, commands run where the operating system keeps them inside the work. */
export function openSandboxes(runtime: RuntimeContext, deny: readonly PolicyRule[]): Sandboxes {
  const { paths, settings: read } = runtime.discovered;
  const settings = readSandboxSettings(read.settings.plain.sandbox);
  const sandbox = createSandbox({
    runtime: runtime.sandbox,
    settings,
    home: paths.home,
    deny,
  });
  return {
    sandbox,
    ...(settings.isolatesReadOnlyCommands ? { wall: runtime.wall } : {}),
  };
}

/** The variables of the commands of each agent now; `added` are those that hooks of the session's start set. */
export function createEnvironments(
  { environment, discovered }: FolderContext,
  added: ReadonlyMap<string, string>,
) {
  return ({ env = {} }: Pick<AgentPlan, "env">): Readonly<Record<string, string | undefined>> => ({
    ...environment,
    ...Object.fromEntries(added),
    ...Object.fromEntries(Object.entries(env).map(([name, { value }]) => [name, value])),
    // `~` must mean to the tools what it means to the rules.
    HOME: discovered.paths.home,
  });
}

/** Contexts of one session: each agent knows what it has read itself, and all know who changed what. */
export function createToolContexts(
  runtime: RuntimeContext,
  { sessionId, agent: main }: Pick<AgentPlan, "sessionId" | "agent">,
  environmentOf: ReturnType<typeof createEnvironments>,
) {
  const { paths } = runtime.discovered;
  const outputDirectory = outputFolder(runtime, sessionId);
  const sessionLedger = createSessionFiles();
  const noteTemporary = createTemporaryNotes(paths.temporaryNotes);
  return (plan: AgentPlan, directory: () => string) => {
    const files = withKnownFiles(
      sessionLedger.forAgent(),
      plan.task !== undefined ? undefined : runtime.live?.seenFile,
    );
    const mayRead = createMayRead(plan);
    const path = agentPath(plan, main);
    // What lies in memory is changed by one process at a time, and an agent's own directory is there before it writes.
    const { memory } = plan;
    const { agentMemory } = paths;

    const writeInTurn = createWriteInTurn({
      roots: Object.values(agentMemory),
      async prepare(path) {
        if (memory !== undefined && isInside(path, [memory.directory])) await makeMemoryDirectory(memory);
      },
    });
    const walled = {
      wallRules: wallRules(plan.policy, scopedDenials(plan)),
      ...(plan.policy.walled === true ? { countsOnWall: true } : {}),
    };
    return (
      call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
    ): ToolContext => ({
      ...call,
      idempotencyKey:
        runtime.idempotencyKey?.(call.callId) ?? `${plan.sessionId}/${plan.agent.id}/${call.callId}`,
      directory: directory(),
      workingDirectories: plan.policy.workingDirectories,
      sessionId,
      agent: plan.agent,
      agentPath: path,
      files,
      host: runtime.host,
      environment: environmentOf(plan),
      outputDirectory,
      writeInTurn,
      ...walled,
      ...(runtime.keepsTranscripts ? { noteTemporary } : {}),
      ...(mayRead === undefined ? {} : { mayRead }),
    });
  };
}

/** A child knows only what it has read itself. */
function withKnownFiles(files: FileLedger, known: SessionPorts["seenFile"]): FileLedger {
  if (known === undefined) return files;
  return { ...files, seen: (path) => files.seen(path) ?? known(path) };
}

type MayRead = NonNullable<ToolContext["mayRead"]>;

/**
 * Whether a search may show what it finds in a file, by real path: not where a rule denies that it is read or searched,
 * or wants to be asked first. Undefined where no rule applies to that, so that searches need not ask for each file.
 */
function createMayRead(plan: Pick<AgentPlan, "tools" | "policy" | "directory">): MayRead | undefined {
  const { policy } = plan;
  const deny = [...policy.deny, ...scopedDenials(plan)].filter(restrictsReading);
  const ask = policy.ask.filter(restrictsReading);
  if (deny.length + ask.length === 0) return undefined;
  // Only what rules forbid is left out: the search itself was allowed, and its tools need not include Read.
  const { toolScopes: _scopes, outerModes: _modes, ...rest } = policy;
  const open = { ...rest, mode: "bypassPermissions", deny, ask } as const;
  const isForbiddenName = createNameCheck(deny, plan);
  const finder = createCopyFinder({ ...policy, deny, ask });
  return (path, tool) => {
    const facts = { paths: [{ forms: [path], copies: finder.of(path), use: "read" as const }] };
    const call = { tool, effect: "read", paths: [path], input: {}, facts };
    return decide(call, open).type === "allow" && !isForbiddenName(path);
  };
}

/** Tools that show what is in files. */
const readingTools: ReadonlySet<string> = new Set(
  toolTable
    .filter(({ effect, pathFields = [] }) => effect === "read" && pathFields.length > 0)
    .map(({ name }) => name),
);

function restrictsReading({ rule: { canonicalTool, specifier } }: PolicyRule): boolean {
  return specifier.type === "toolGlob" || readingTools.has(canonicalTool);
}

/** What the definitions of this agent and of those above it take away from their tools. */
function scopedDenials({
  tools,
  policy,
  directory,
}: Pick<AgentPlan, "tools" | "policy" | "directory">): readonly PolicyRule[] {
  const scopes: readonly ToolScopes[] = [{ anchor: directory, tools }, ...(policy.toolScopes ?? [])];
  return scopes.flatMap(({ anchor, tools: scoped, deny: excluded = [] }) => [
    ...scoped.flatMap(({ name, deny = [] }) => deny.flatMap((text) => ruleOf(`${name}(${text})`, anchor))),
    ...excluded.flatMap((text) => ruleOf(text, anchor)),
  ]);
}

function ruleOf(text: string, anchor: string): readonly PolicyRule[] {
  const reading = parseRule(text);
  return reading.type === "rule" ? [{ rule: reading.rule, anchor }] : [];
}

/** Whether a file with several names is, or may be, one that a rule forbids under another. */
function createNameCheck(
  deny: readonly PolicyRule[],
  { policy, directory }: Pick<AgentPlan, "policy" | "directory">,
): (path: string) => boolean {
  const named = deny.filter(({ rule }) => rule.specifier.type === "path");
  const runtime = { directory, home: policy.home, platform: policy.platform ?? "linux", policy };
  const literal = named.map((rule) => literalPath(rule, runtime));
  return (path) => {
    const own = named.length === 0 ? undefined : statsOf(path);
    if (own === undefined || !own.isFile() || own.nlink < 2) return false;
    return literal.some((name) => name === undefined || isSame(statsOf(name), own));
  };
}

function isSame(stats: Stats | undefined, { ino, dev }: Stats): boolean {
  return stats?.ino === ino && stats.dev === dev;
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Makes the memory directory of an agent that starts; one that cannot be made is reported and hinders nothing else. */
export async function prepareMemory(
  memory: NonNullable<AgentPlan["memory"]>,
  notice?: (text: string) => void,
): Promise<void> {
  try {
    await makeMemoryDirectory(memory);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    notice?.(`The memory directory ${memory.directory} could not be created: ${why}`);
  }
}

/** What decides whether the tools of MCP servers are loaded on demand. */
export interface DeferralFacts {
  /** ENABLE_TOOL_SEARCH; absent: when they take more than a tenth of the window. */
  readonly mode: ToolSearchMode | undefined;
  /** Tokens that fit into a request to the agent's model. */
  readonly contextWindow: number;
}

/** Whether these tools are too many to be shown from the start. */
export function areDeferred(
  tools: readonly Tool[],
  { mode = { abovePercent: 10 }, contextWindow }: DeferralFacts,
): boolean {
  const deferrable = tools.filter(isDeferrable);
  if (mode === "never" || deferrable.length === 0) return false;
  return mode === "always" || takesMore(deferrable, { percent: mode.abovePercent, contextWindow });
}

interface SearchParts extends DeferralFacts {
  readonly definition: Pick<PlannedDefinition, "tools"> | undefined;
  /** All tools that the agent has. */
  readonly granted: readonly Tool[];
}

/** The search of an agent that has one; undefined where it gets all its tools from the start. */
export function openToolSearch(
  plan: Pick<AgentPlan, "tools" | "loadedTools">,
  { definition, granted, ...facts }: SearchParts,
): ToolSearch | undefined {
  const isGranted = plan.tools.some(({ name }) => name === toolSearchName);
  // A program's own tool of that name takes its place.
  if (!isGranted || granted.some(({ name }) => name === toolSearchName)) return undefined;
  // Who names a tool wants it to be there.
  const named = new Set((definition?.tools ?? []).map((entry) => parseToolEntry(entry).name));
  const deferred = granted.filter((tool) => isDeferrable(tool) && !named.has(tool.name));
  return areDeferred(deferred, facts) ? createToolSearch(deferred, plan.loadedTools) : undefined;
}

/** Tools over resources belong to no server and stay. */
function isDeferrable({ origin, mcp, isAlwaysLoaded }: Tool): boolean {
  return origin === "mcp" && mcp !== undefined && isAlwaysLoaded !== true;
}

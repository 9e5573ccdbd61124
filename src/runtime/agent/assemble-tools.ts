import { randomBytes } from "node:crypto";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { ToolName } from "../../foundation/tool-table.ts";
import type { ModelFacts, ServerTool } from "../../model/model.ts";
import { type RunPlan, webSearchName } from "../../planning/plan-tools.ts";
import { createBuiltinTools } from "../../tools/builtin/create-builtin-tools.ts";
import { createTodoStore, type TodoStore } from "../../tools/builtin/create-todo-write-tool.ts";
import type { Sandboxes } from "../../tools/builtin/enter-sandbox.ts";
import { createShellDirectories } from "../../tools/builtin/shell-directories.ts";
import { webSearchServerTool } from "../../tools/builtin/web/web-search-server-tool.ts";
import { createShells, type Shells } from "../../tools/command/shells.ts";
import { builtinTools } from "../../tools/grants/builtin-tools.ts";
import { type AvailableTool, availableTool } from "../../tools/grants/match-tools.ts";
import type { TaskSource, TaskView } from "../../tools/task-source.ts";
import type { Tool } from "../../tools/tool.ts";
import { askingTool } from "../approvals/answer-question.ts";
import type { SessionCommands } from "../gather-session.ts";
import { outputToolName } from "../options/typed-output.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { SessionServers } from "../servers/session-servers.ts";

export interface AssembledTools {
  readonly tools: readonly Tool[];
  /** What a plan may grant: the tools, and those the provider runs itself. */
  readonly available: readonly AvailableTool[];
  /** The tools that a run's provider runs itself, as far as its plan grants them. */
  readonly serverTools: (plan: Pick<RunPlan, "tools">, facts: ModelFacts) => readonly ServerTool[];
  /** The folder an agent's last command ended in. */
  readonly directory: (agentId: string) => string | undefined;
  /** An agent's own list of steps. */
  readonly todos: TodoStore["read"];
  /** Ends what one agent has left running. */
  readonly release: (agentId: string) => Promise<void>;
  /** Moves the commands that an agent waits for to the background; returns their descriptions. */
  readonly moveCommands: (agentId: string) => readonly string[];
  /** Ends what is still running in the background. */
  readonly dispose: () => Promise<void>;
}

export interface ToolParts {
  readonly servers?: Pick<SessionServers, "tools" | "resourceTools" | "planned"> | undefined;
  /** The tool that answers in a person's place; agents do not have it. */
  readonly promptTool?: string | undefined;
  readonly sandboxes?: Sandboxes;
  readonly taskSources?: readonly TaskSource[];
  /** Whether there are skills that a model may call; each agent has a Skill tool of its own. */
  readonly hasSkills?: boolean;
  readonly commands?: Pick<SessionCommands, "records" | "earlier">;
}

/** Makes the tools of one session; background shells belong to it and end with it. */
export function assembleTools(
  world: Pick<RuntimeContext, "approvals" | "extraTools" | "host" | "now" | "teams" | "live">,
  { sandboxes = {}, taskSources = [], hasSkills = false, servers, promptTool, commands }: ToolParts = {},
): AssembledTools {
  checkExtraTools(world.extraTools);
  const { commandChanged } = world.live ?? {};
  const changed =
    commandChanged === undefined
      ? undefined
      : (view: TaskView): void => commandChanged(view, () => shells.stop(view.id));
  const shells: Shells = createShells({
    newId: () => randomBytes(4).toString("hex"),
    now: world.now,
    ...commands,
    ...(changed === undefined ? {} : { onStarted: changed, onEnded: changed }),
  });
  const directories = createShellDirectories();
  const todos = createTodoStore();
  const replaced = new Set(world.extraTools.map(({ name }) => name));
  const builtin = createBuiltinTools({
    shells,
    directories,
    now: world.now,
    todos,
    taskSources,
    bash: sandboxes,
  })
    .filter(({ name }) => !replaced.has(name))
    .filter((tool) => canBeAnswered(tool, world));
  const fromServers = (servers?.tools ?? []).filter(({ name }) => !replaced.has(name) && name !== promptTool);
  const reading = (servers?.resourceTools() ?? []).filter(({ name }) => !replaced.has(name));
  const own = [...builtin, ...world.extraTools];
  const isProviders = !replaced.has(webSearchName);
  return {
    tools: [...own, ...fromServers],
    available: availableTools({
      own,
      fromServers: [...fromServers, ...reading],
      replaced,
      hasSkills,
      hasTeams: world.teams !== undefined,
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
    moveCommands: (agentId) => shells.moveToBackground(agentId).map(({ description }) => description),
    dispose: async () => shells[Symbol.asyncDispose](),
  };
}

/** No one can be asked where the program around it has no way to ask, and questions do not wait. */
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
  hasTeams,
  planned,
}: {
  readonly own: readonly Tool[];
  readonly fromServers: readonly Tool[];
  readonly replaced: ReadonlySet<string>;
  readonly hasSkills: boolean;
  readonly hasTeams: boolean;
  readonly planned: readonly AvailableTool[];
}): readonly AvailableTool[] {
  return [
    ...declaredTools(["Agent"]),
    ...declaredTools(["SendMessage", ...(hasSkills ? ["Skill" as const] : [])], replaced),
    ...(hasTeams
      ? declaredTools(teamTools, replaced).map((tool) => ({ ...tool, forTeams: true as const }))
      : []),
    ...own.map(availableTool),
    ...declaredTools([webSearchName], replaced),
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
function declaredTools(
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

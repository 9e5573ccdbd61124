import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { abortable } from "../foundation/abortable.ts";
import type { Stopwatch } from "../foundation/stopwatch.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { Model } from "../model/model.ts";
import { isReplaced } from "../planning/own-servers.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import type { CallServer, ChildServers, PreparedChild } from "../tasks/child-host.ts";
import type { RunGuard } from "../tasks/run-guard.ts";
import type { TaskControl } from "../tasks/task-manager.ts";
import type { TodoStore } from "../tools/builtin/create-todo-write-tool.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import { createAgentSkills } from "./agent-skills.ts";
import type { AskPerson } from "./ask-person.ts";
import type { AssembledTools } from "./assemble-tools.ts";
import { carryOverContext } from "./carry-over-context.ts";
import type { CanUseTool } from "./create-authorize.ts";
import { createCompactionPort } from "./create-compaction-port.ts";
import { createPorts } from "./create-ports.ts";
import { prepareMemory } from "./prepare-memory.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { openSessionHooks } from "./session-hooks.ts";
import { resourceToolsOf, type SessionServers } from "./session-servers.ts";
import type { SessionSkills } from "./session-skills.ts";
import { registeredHooks } from "./skill-hooks.ts";
import { askHeld, canUseToolHeld, contextHeld, holding } from "./while-asking.ts";

export interface ChildSurroundings {
  readonly world: RuntimeContext;
  readonly tools: readonly Tool[];
  readonly serverTools: AssembledTools["serverTools"];
  readonly sessionServers: Pick<SessionServers, "resourceTools" | "call">;
  readonly skills: SessionSkills;
  readonly findModel: (name: string) => Promise<Model>;
  readonly directory: (agentId: string) => string | undefined;
  readonly todos: TodoStore["read"];
  readonly toolContext: (
    plan: ChildPlan,
    directory: () => string,
  ) => (
    call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
  ) => ToolContext;
  /** Keeps the child's limits. */
  readonly guard: (line: TaskControl) => RunGuard;
  /** The clock of the agent that waits for it. */
  readonly main: Stopwatch;
  /** Puts a child's calls to the same person, in the same queue, as those of the session. */
  readonly askPerson?: (plan: ChildPlan) => AskPerson;
}

/** Binds what a plan grants a child to this session: its tools, its rights, its hooks, and who can be asked for it. */
export async function prepareChild(
  plan: ChildPlan,
  {
    definition,
    model,
    line,
    servers,
  }: {
    readonly definition: AgentDefinition;
    readonly model: Model;
    readonly line: TaskControl;
    readonly servers?: ChildServers | undefined;
  },
  surroundings: ChildSurroundings,
): Promise<PreparedChild> {
  const { world, skills } = surroundings;
  const guard = surroundings.guard(line);
  const whileAsking = holding(guard.stopwatch, surroundings.main);
  const hasOtherSkill = surroundings.tools.some(({ name }) => name === "Skill");
  await prepareMemory(plan, world.notice);
  const granted = new Set(plan.tools.map(({ name }) => name));
  const directory = (): string => surroundings.directory(plan.agent.id) ?? plan.directory;
  const transcript = sessionFiles(world.discovered.paths.transcripts, plan.sessionId).agent(
    plan.agent.id,
  ).transcript;
  const reported = line.reported === undefined ? {} : { reported: line.reported };
  const child = { agentId: plan.agent.id, agentType: plan.task.agentType, transcript, ...reported };
  const hooks = await openSessionHooks({
    world,
    plan,
    model,
    pay: guard.pay,
    definition,
    source: "startup",
    directory,
    child,
    mayGrow: skills.bringHooks,
    callServer: ownFirst(servers, surroundings.sessionServers.call),
  });
  for (const note of skills.preload(definition).notes) world.notice?.(note);
  if (plan.task.skill !== undefined)
    hooks?.add(registeredHooks(plan.task.skill, { id: plan.agent.id, isSubagent: true }));
  const ownSkills = createAgentSkills({
    skills,
    world,
    plan,
    isSubagent: true,
    bash: surroundings.tools.find(({ name }) => name === "Bash"),
    hooks,
    findModel: async (name) => guard.pay(await surroundings.findModel(name)),
  });
  const ports = createPorts({
    plan,
    discovered: world.discovered,
    model: guard.pay(model),
    limits: guard.limits,
    tools: [
      ...surroundings.tools.filter(
        ({ name, mcp }) => granted.has(name) && !isReplaced(mcp?.serverName, servers?.own),
      ),
      ...(servers?.tools ?? []).filter(({ name }) => granted.has(name)),
      ...resourceToolsOf(plan, surroundings.sessionServers, servers),
      ...(granted.has("Skill") && !hasOtherSkill ? [ownSkills.tool] : []),
    ],
    serverTools: surroundings.serverTools(plan, model.facts),
    skills: ownSkills,
    // Once it is moved to the background, nothing of servers is left to it.
    livePolicy: world.live?.policy,
    isOffered: ({ origin }) => origin !== "mcp" || line.attended(),
    history: [],
    toolContext: contextHeld(withoutQuestions(surroundings.toolContext(plan, directory), line), whileAsking),
    ...(hooks === undefined ? {} : { hooks }),
    canUseTool: canUseToolHeld(whileAttended(world.canUseTool, line), whileAsking),
    ...(surroundings.askPerson === undefined
      ? {}
      : { askPerson: askHeld(untilDetached(surroundings.askPerson(plan), line), whileAsking) }),
    directory,
    now: world.now,
    concurrency: readEnvironment(world.environment).options.maxToolUseConcurrency,
    compaction: createCompactionPort({
      world,
      model: model.facts,
      hooks,
      restate: () =>
        carryOverContext({
          todos: surroundings.todos(plan.agent.id),
          skills: ownSkills.called(),
          offered: ownSkills.offered(),
        }),
    }),
    record: () => undefined,
    ...(line.commit === undefined ? {} : { commit: line.commit }),
    dispose: async () => undefined,
  });
  return {
    ports,
    async prompt(text, signal) {
      const content = [{ type: "text", text } as const];
      const ready = await hooks?.prepare(content, signal);
      return { role: "user", content: ready?.type === "ready" ? ready.content : content };
    },
    end: async (stopped) => hooks?.end(stopped),
  };
}

/** Hooks of a child reach the servers of its definition, and those of the session. */
function ownFirst(servers: ChildServers | undefined, call: CallServer): CallServer {
  return (server, tool, input, options) =>
    servers?.call !== undefined && servers.own.names.includes(server)
      ? servers.call(server, tool, input, options)
      : call(server, tool, input, options);
}

const isUnattended = "it would have to be asked for, and in the background nobody is asked";

/** A child that was moved to the background asks nobody any more; before that the program answers first. */
function whileAttended(canUseTool: CanUseTool | undefined, line: TaskControl): CanUseTool {
  return async (tool, input, context) => {
    if (!line.attended()) return { behavior: "deny", message: isUnattended };
    if (canUseTool === undefined) return { behavior: "ask" };
    const signal = AbortSignal.any([context.signal, line.unattended]);
    return refusedWhenDetached(abortable(canUseTool(tool, input, { ...context, signal }), signal), line, {
      behavior: "deny",
      message: isUnattended,
    });
  };
}

/** A question that is open when the child is moved to the background is answered no. */
function untilDetached(person: AskPerson, line: TaskControl): AskPerson {
  return {
    policy: person.policy,
    ask: (call, { signal }) =>
      refusedWhenDetached(person.ask(call, { signal: AbortSignal.any([signal, line.unattended]) }), line, {
        type: "denied",
        reason: isUnattended,
        stops: false,
      }),
  };
}

async function refusedWhenDetached<Answer>(
  answer: Promise<Answer>,
  line: TaskControl,
  no: Answer,
): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (line.unattended.aborted) return no;
    throw error;
  }
}

type MakeContext = ReturnType<ChildSurroundings["toolContext"]>;

/** In the background a tool that asks finds nobody to ask; the agent goes on. */
function withoutQuestions(makeContext: MakeContext, line: TaskControl): MakeContext {
  return (call) => {
    const context = makeContext(call);
    if (line.attended()) return context;
    const { ask: _ask, ...host } = context.host;
    return { ...context, host };
  };
}

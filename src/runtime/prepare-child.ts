import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { abortable } from "../foundation/abort.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { Model } from "../model/model.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import { readEnvironment } from "../settings/environment.ts";
import type { PreparedChild } from "../tasks/child-host.ts";
import type { RunLine } from "../tasks/task-manager.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import type { CanUseTool } from "./admit.ts";
import type { AskPerson } from "./ask-person.ts";
import { openSessionHooks } from "./session-hooks.ts";
import { createPorts } from "./session-ports.ts";
import type { SessionWorld } from "./session-world.ts";

export interface ChildSurroundings {
  readonly world: SessionWorld;
  readonly tools: readonly Tool[];
  readonly directory: (agentId: string) => string | undefined;
  readonly toolContext: (
    plan: ChildPlan,
    directory: () => string,
  ) => (call: Pick<ToolContext, "callId" | "signal" | "progress">) => ToolContext;
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
  }: { readonly definition: AgentDefinition; readonly model: Model; readonly line: RunLine },
  surroundings: ChildSurroundings,
): Promise<PreparedChild> {
  const { world } = surroundings;
  const granted = new Set(plan.tools.map(({ name }) => name));
  const directory = (): string => surroundings.directory(plan.agent.id) ?? plan.directory;
  const transcript = sessionFiles(world.discovered.paths.transcripts, plan.sessionId).agent(
    plan.agent.id,
  ).transcript;
  const child = { agentId: plan.agent.id, agentType: plan.task.agentType, transcript };
  const hooks = await openSessionHooks({
    world,
    plan,
    model,
    definition,
    source: "startup",
    directory,
    child,
  });
  const ports = createPorts({
    plan,
    discovered: world.discovered,
    model,
    tools: surroundings.tools.filter(({ name }) => granted.has(name)),
    history: [],
    toolContext: withoutQuestions(surroundings.toolContext(plan, directory), line),
    ...(hooks === undefined ? {} : { hooks }),
    canUseTool: whileAttended(world.canUseTool, line),
    ...(surroundings.askPerson === undefined
      ? {}
      : { askPerson: untilDetached(surroundings.askPerson(plan), line) }),
    directory,
    now: world.now,
    atOnce: readEnvironment(world.environment).options.maxToolUseConcurrency,
    record: () => undefined,
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

const nobodyIsAsked = "it would have to be asked for, and in the background nobody is asked";

/** A child that was moved to the background asks nobody any more; before that the program answers first. */
function whileAttended(canUseTool: CanUseTool | undefined, line: RunLine): CanUseTool {
  return async (tool, input, context) => {
    if (!line.attended()) return { behavior: "deny", message: nobodyIsAsked };
    if (canUseTool === undefined) return { behavior: "ask" };
    const signal = AbortSignal.any([context.signal, line.unattended]);
    return refusedWhenDetached(abortable(canUseTool(tool, input, { ...context, signal }), signal), line, {
      behavior: "deny",
      message: nobodyIsAsked,
    });
  };
}

/** A question that is open when the child is moved to the background is answered no. */
function untilDetached(person: AskPerson, line: RunLine): AskPerson {
  return {
    policy: person.policy,
    ask: (call, { signal }) =>
      refusedWhenDetached(person.ask(call, { signal: AbortSignal.any([signal, line.unattended]) }), line, {
        type: "denied",
        because: nobodyIsAsked,
        stops: false,
      }),
  };
}

async function refusedWhenDetached<Answer>(
  answer: Promise<Answer>,
  line: RunLine,
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
function withoutQuestions(makeContext: MakeContext, line: RunLine): MakeContext {
  return (call) => {
    const context = makeContext(call);
    if (line.attended()) return context;
    const { ask: _ask, ...host } = context.host;
    return { ...context, host };
  };
}

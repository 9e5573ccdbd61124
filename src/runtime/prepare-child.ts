import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { Model } from "../model/model.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { PreparedChild } from "../tasks/spawner.ts";
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
    toolContext: surroundings.toolContext(plan, directory),
    ...(hooks === undefined ? {} : { hooks }),
    canUseTool: whileAttended(world.canUseTool, line),
    ...(surroundings.askPerson === undefined ? {} : { askPerson: surroundings.askPerson(plan) }),
    directory,
    now: world.now,
    record: () => undefined,
    dispose: async () => undefined,
  });
  return {
    ports: { ...ports, takeMessages: () => [...ports.takeMessages(), ...line.takeMessages()] },
    async prompt(text, signal) {
      const content = [{ type: "text", text } as const];
      const ready = await hooks?.prepare(content, signal);
      return { role: "user", content: ready?.type === "ready" ? ready.content : content };
    },
    end: async () => hooks?.end(),
  };
}

/** A child that was moved to the background asks nobody any more; before that the program answers first. */
function whileAttended(canUseTool: CanUseTool | undefined, line: RunLine): CanUseTool {
  return async (tool, input, context) => {
    if (!line.attended())
      return {
        behavior: "deny",
        message: "it would have to be asked for, and in the background nobody is asked",
      };
    return canUseTool === undefined ? { behavior: "ask" } : canUseTool(tool, input, context);
  };
}

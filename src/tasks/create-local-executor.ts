import type { UserMessage } from "../conversation/message.ts";
import type { RunEvent, SpawnStep } from "../conversation/run-event.ts";
import type { LoopInput, LoopPorts } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { Execution, Executor } from "./executor.ts";
import type { TaskControl } from "./task-manager.ts";

/** An agent that is bound to this process: what its loop calls, and what happens around it. */
export interface OpenedAgent {
  readonly ports: LoopPorts;
  /** The first message, after hooks have seen it. */
  readonly prompt: (text: string, signal: AbortSignal) => Promise<UserMessage>;
  /** Runs once, whatever the end; when the agent was stopped, it must not take long. */
  readonly end: (stopped: AbortSignal) => Promise<void>;
}

export type OpenAgentHere = (plan: ChildPlan, control: TaskControl) => Promise<OpenedAgent>;

/** Runs children in this process. */
export function createLocalExecutor(open: OpenAgentHere): Executor {
  return { execute: (execution, control, signal) => run(execution, { open, control, signal }) };
}

async function* run(
  { plan, history }: Execution,
  {
    open,
    control,
    signal,
  }: { readonly open: OpenAgentHere; readonly control: TaskControl; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent> {
  const steps = stepsOf(plan);
  yield* steps.before;
  const agent = await open(plan, control);
  try {
    const prompt = await agent.prompt(plan.task.prompt, signal);
    yield* steps.after;
    const takeMessages = () => [...agent.ports.takeMessages(), ...control.takeMessages()];
    yield* runAgentLoop({ ...inputOf({ plan, history }), prompt }, { ...agent.ports, takeMessages }, signal);
  } finally {
    await agent.end(signal);
  }
}

function inputOf({ plan, history }: Execution): LoopInput {
  return {
    system: plan.system,
    history,
    maxTurns: plan.maxTurns?.value ?? Number.POSITIVE_INFINITY,
    lastTurn: true,
    askWhenSilent: true,
    ...(plan.reminder === undefined ? {} : { reminder: plan.reminder }),
    ...(plan.effort === undefined ? {} : { effort: plan.effort.value }),
  };
}

/** What was decided in each step of a start. `hooks` lies between the two halves: there they ran. */
function stepsOf(plan: ChildPlan): { readonly before: RunEvent[]; readonly after: RunEvent[] } {
  const { task, policy, definition } = plan;
  const event = (step: SpawnStep, value: unknown): RunEvent => ({ type: "spawn-advanced", step, value });
  return {
    before: [
      event("limits", { maxTurns: plan.maxTurns?.value }),
      event("definition", {
        agentType: task.agentType,
        scope: definition.source.scope,
        file: definition.source.file,
      }),
      event("id", { agentId: plan.agent.id, resumed: task.resumed }),
    ],
    after: [
      event("hooks", { event: "SubagentStart" }),
      event("model", plan.model),
      event(
        "tools",
        plan.tools.map(({ name }) => name),
      ),
      event("permissions", {
        mode: policy.mode,
        allow: policy.allow.length,
        ask: policy.ask.length,
        deny: policy.deny.length,
      }),
      event("memory", plan.memory ?? null),
      event("prompt", { parts: plan.system.length, characters: plan.system.join("").length }),
      event("configuration", {
        background: task.background,
        isolation: task.isolation ?? null,
        effort: plan.effort?.value ?? null,
        directory: plan.directory,
      }),
      event(
        "scoped-hooks",
        (definition.hooks ?? []).map((hook) => hook.event),
      ),
      event("launch", { description: task.description }),
    ],
  };
}

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
  yield { type: "spawn-advanced", steps: steps.before };
  const agent = await open(plan, control);
  try {
    const prompt = await agent.prompt(plan.task.prompt, signal);
    yield { type: "spawn-advanced", steps: steps.after };
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

type Steps = Extract<RunEvent, { type: "spawn-advanced" }>["steps"];

/** What was decided in each step of a start. `hooks` lies between the two halves: there they ran. */
function stepsOf(plan: ChildPlan): { readonly before: Steps; readonly after: Steps } {
  const { task, policy, definition } = plan;
  const decided = (step: SpawnStep, value: unknown) => ({ step, value });
  return {
    before: [
      decided("limits", { maxTurns: plan.maxTurns?.value }),
      decided("definition", {
        agentType: task.agentType,
        scope: definition.source.scope,
        file: definition.source.file,
      }),
      decided("id", { agentId: plan.agent.id, resumed: task.resumed }),
    ],
    after: [
      decided("hooks", { event: "SubagentStart" }),
      decided("model", plan.model),
      decided(
        "tools",
        plan.tools.map(({ name }) => name),
      ),
      decided("permissions", {
        mode: policy.mode,
        allow: policy.allow.length,
        ask: policy.ask.length,
        deny: policy.deny.length,
      }),
      decided("memory", plan.memory ?? null),
      decided("prompt", { parts: plan.system.length, characters: plan.system.join("").length }),
      decided("configuration", {
        background: task.background,
        isolation: task.isolation ?? null,
        effort: plan.effort?.value ?? null,
        directory: plan.directory,
      }),
      decided(
        "scoped-hooks",
        (definition.hooks ?? []).map((hook) => hook.event),
      ),
      decided("launch", { description: task.description }),
    ],
  };
}

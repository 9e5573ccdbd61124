import type { RunEvent, SpawnStep } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { ChildHost } from "./child-host.ts";
import type { Execution, Executor } from "./executor.ts";
import type { TaskControl } from "./task-manager.ts";

/** Runs children in this process, on what the session around them gives. */
export function createLocalExecutor(host: Pick<ChildHost, "model" | "prepare">): Executor {
  return { execute: (execution, line, signal) => run(execution, { host, line, signal }) };
}

async function* run(
  { plan, history, definition, servers }: Execution,
  {
    host,
    line,
    signal,
  }: {
    readonly host: Pick<ChildHost, "model" | "prepare">;
    readonly line: TaskControl;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<RunEvent> {
  const steps = stepsOf(plan, definition);
  yield* steps.before;
  const model = await host.model(plan.chosenModel);
  const child = await host.prepare(plan, { definition, model, line, servers });
  try {
    const prompt = await child.prompt(plan.task.prompt, signal);
    yield* steps.after;
    const takeMessages = () => [...child.ports.takeMessages(), ...line.takeMessages()];
    const ports = { ...child.ports, takeMessages };
    yield* runAgentLoop({ ...inputOf({ plan, history }), prompt }, ports, signal);
  } finally {
    await child.end(signal);
  }
}

function inputOf({ plan, history }: Pick<Execution, "plan" | "history">): LoopInput {
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

/** What was decided in each step of a start, for those who watch. `hooks` lies between the two halves: there they ran. */
function stepsOf(
  plan: ChildPlan,
  definition: AgentDefinition,
): { readonly before: RunEvent[]; readonly after: RunEvent[] } {
  const { task, policy } = plan;
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

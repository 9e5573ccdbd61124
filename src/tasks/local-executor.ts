import type { RunEvent } from "../conversation/run-event.ts";
import { runAgentLoop } from "../loop/agent-loop.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import type { ChildHost } from "./child-host.ts";
import type { Execution, Executor } from "./executor.ts";
import { stepsOf } from "./spawn-steps.ts";
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

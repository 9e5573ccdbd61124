import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent, SpawnStep } from "../conversation/run-event.ts";
import { endingOfCause, type LoopPorts } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import { createTally } from "../loop/tally.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import { createAgentHistory } from "./agent-history.ts";
import type { Execution, Executor, TaskControl } from "./task-manager.ts";

/** An agent that is bound to this process: what its loop calls, and what happens around it. */
export interface OpenedAgent {
  readonly ports: LoopPorts;
  /** The first message, after hooks have seen it. */
  readonly prompt: (text: string, signal: AbortSignal) => Promise<UserMessage>;
  /** Runs once, whatever the end; when the agent was stopped, it must not take long. */
  readonly end: (stopped: AbortSignal) => Promise<void>;
  /** What carries it out in the place of our own loop. */
  readonly loop?: typeof runAgentLoop;
  /** Set for a teammate, which waits for more work when it is done. */
  readonly standby?: Standby;
}

/** How a teammate goes from one piece of work to the next. */
export interface Standby {
  /** Whether it ends now instead of waiting, and how. */
  readonly over: (ending: RunEnding) => RunEnding | undefined;
  /** Reports how its work ended, before it counts as idle. */
  readonly report: (ending: RunEnding) => Promise<void>;
  /** The conversation was written down with this mail in it. */
  readonly recorded: (mail: readonly string[]) => void;
  /** Resolves with what it works on next; undefined when it has waited too long. */
  readonly wait: (signal: AbortSignal) => Promise<UserMessage | undefined>;
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
    for await (const event of work({ plan, history }, agent, { prompt, control, signal })) {
      // Beside what a run took is what was quoted for it.
      const isQuoted = event.type === "run-ended" && plan.quote !== undefined;
      yield isQuoted ? { ...event, ending: { ...event.ending, quote: plan.quote } } : event;
    }
  } finally {
    await agent.end(signal);
  }
}

/**
 * Until its work is done; of a teammate, one piece of work after the other in one conversation, each with the limits of a
 * run, and idle in between.
 */
async function* work(
  { plan, history }: Execution,
  { ports: own, loop = runAgentLoop, standby }: OpenedAgent,
  {
    prompt,
    control,
    signal,
  }: { readonly prompt: UserMessage; readonly control: TaskControl; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent> {
  const ports = { ...own, takeMessages: () => [...own.takeMessages(), ...control.takeMessages()] };
  const conversation = createAgentHistory(plan, history);
  const maxTurns = plan.maxTurns?.value ?? Number.POSITIVE_INFINITY;
  let next: UserMessage = prompt;
  while (true) {
    // A child is reminded of its last turn, and asked for an answer where it ends without one.
    const input = conversation.input(next, { maxTurns, lastTurn: true, askWhenSilent: true });
    if (standby === undefined) return yield* loop(input, ports, signal);
    let ending: RunEnding | undefined;
    for await (const event of loop(input, ports, signal)) {
      if (event.type === "run-ended") ending = event.ending;
      else {
        conversation.follow(event);
        yield event;
        // The next event was asked for, so this one is written down.
        if (event.type === "user-added" && event.message.mail !== undefined)
          standby.recorded(event.message.mail);
      }
    }
    // The loop always says how it ended.
    if (ending === undefined) return;
    const last = ending.status === "stopped" || signal.aborted ? ending : standby.over(ending);
    if (last !== undefined) return yield { type: "run-ended", ending: last };
    conversation.undoPrompt(ending);
    conversation.answerCutOffCalls();
    await standby.report(ending);
    yield { type: "run-idled", ending };
    const wait = () => standby.wait(signal);
    const mail = await (control.stopwatch?.hold(wait) ?? wait()).catch((error: unknown) => {
      if (signal.aborted) return undefined;
      throw error;
    });
    if (mail === undefined) return yield { type: "run-ended", ending: endedIdle(ending, ports, signal) };
    await control.takePlace?.(signal);
    await ports.verify?.begin(signal);
    next = mail;
  }
}

/** What it took was counted when it became idle. */
function endedIdle({ text }: RunEnding, { now }: LoopPorts, signal: AbortSignal): RunEnding {
  const { totals, denials } = createTally(now).result();
  if (!signal.aborted) return { status: "completed", reason: "idle_timeout", text, totals, denials };
  const { status, reason, error } = endingOfCause(signal.reason, true);
  return { status, reason, text, totals, denials, error };
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

import type { Message, UserMessage } from "../conversation/message.ts";
import type { EventSink, RunEnding, RunEvent, SpawnStep } from "../conversation/run-event.ts";
import { endingOfCause, type LoopPorts } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import { createTally } from "../loop/tally.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import { createAgentHistory } from "./agent-history.ts";
import type { TaskControl } from "./task-manager.ts";
import { type AgentClocks, createStopwatch, type SilenceLimit, watchOf, watchRun } from "./watch-run.ts";

/** A child that is decided: its plan and the conversation it continues. Plain data. */
export interface Execution {
  readonly plan: ChildPlan;
  readonly history: readonly Message[];
}

/**
 * Carries out plans somewhere. The events end with exactly one `run-ended`; a stop through the signal is such an ending
 * too. A reader that leaves early has everything released.
 */
export interface Executor {
  execute(execution: Execution, control: TaskControl, signal: AbortSignal): AsyncIterable<RunEvent>;
}

export interface RefusedChild {
  readonly type: "refused";
  readonly reason: string;
}

/** A child whose plan is decided and on disk, and which holds everything it needs. */
export interface OpenedChild {
  readonly type: "opened";
  readonly execution: Execution;
  readonly executor: Executor;
  /** What its record adds to the control of its run. */
  readonly control: Pick<TaskControl, "reported" | "commit">;
  /** Absent: no clock ends it. */
  readonly clocks?: AgentClocks;
  readonly outputFile: string | undefined;
  /** Where its events are kept and shown. */
  readonly sinks: readonly EventSink[];
  /** Marks it for other processes as waiting for a place, until it runs. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
  /** What it reads before its first turn. */
  readonly pendingMessages: readonly UserMessage[];
  /** Called once, however it ended: gives everything back. Never rejects. */
  readonly close: (state?: TaskState) => Promise<KeptWorktree | undefined>;
}

/** The working tree that an isolated child has left behind. */
export interface KeptWorktree {
  readonly path: string;
  readonly branch: string;
}

/** A child's run under its clocks; its time begins now, so waiting for a place has cost it nothing. */
export function runChild(
  { execution, executor, control, clocks, leaveQueue }: OpenedChild,
  line: TaskControl,
  signal: AbortSignal,
): AsyncIterable<RunEvent> {
  leaveQueue?.();
  if (clocks === undefined) return executor.execute(execution, { ...line, ...control }, signal);
  const { limits } = execution.plan;
  const stopwatch = createStopwatch(clocks.clock, clocks.tree);
  const life = { lastSign: 0 };
  const showLife = (): void => {
    life.lastSign = stopwatch.elapsed();
  };
  return watchRun(
    (stop) => executor.execute(execution, { ...line, ...control, stopwatch, showLife }, stop),
    {
      ...watchOf(execution.plan, clocks, stopwatch),
      life,
      silence: () => silenceOf(limits?.silenceMs?.value, line, clocks),
    },
    signal,
  );
}

/** A child without a limit of its own gets one once it is not watched any more. */
function silenceOf(
  own: number | undefined,
  line: TaskControl,
  { backgroundStopMs = 0 }: AgentClocks,
): SilenceLimit | undefined {
  if (own !== undefined) return { reportMs: own, stopMs: own * 2 };
  if (line.attended() || backgroundStopMs === 0) return undefined;
  return { reportMs: backgroundStopMs / 2, stopMs: backgroundStopMs };
}

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

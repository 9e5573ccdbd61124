import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { EventSink, RunEnding, RunEvent, SpawnStep } from "../conversation/run-event.ts";
import { withoutUndone } from "../conversation/without-undone.ts";
import { interruptedResults } from "../journal/rebuild-conversation.ts";
import { endingOfCause, type LoopInput, type LoopPorts } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import { createTally } from "../loop/tally.ts";
import type { AgentPlan, ChildPlan } from "../planning/agent-plan.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import type { TaskControl, TaskRun } from "./task-manager.ts";
import {
  type AgentClocks,
  createStopwatch,
  type RunWatch,
  type SilenceLimit,
  watchOf,
  watchRun,
} from "./watch-run.ts";

/** An agent that is bound to this process: what its loop calls, and what happens around it. Main agents and children are the same. */
export interface OpenAgent {
  readonly plan: AgentPlan;
  readonly ports: LoopPorts;
  /** A prompt as the model gets it, after hooks have seen it. */
  readonly prepare: (content: UserMessage["content"], signal: AbortSignal) => Promise<PreparedPrompt>;
  /** Runs once, whatever the end; when the agent was stopped, it must not take long. */
  readonly end: (stopped?: AbortSignal) => Promise<void>;
  /** What carries it out in the place of our own loop. */
  readonly loop?: typeof runAgentLoop;
  /** Set for a teammate, which waits for more work when it is done. */
  readonly standby?: Standby;
}

export type PreparedPrompt =
  | { readonly type: "ready"; readonly content: UserMessage["content"] }
  | { readonly type: "blocked"; readonly reason: string };

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

interface PromptOptions {
  readonly prompt: UserMessage;
  readonly signal: AbortSignal;
  readonly limits: Pick<LoopInput, "maxTurns" | "lastTurn" | "askWhenSilent">;
  /** The clocks of this prompt alone. */
  readonly watch?: RunWatch;
  /** Takes each event before it is part of the conversation. */
  readonly take?: (event: RunEvent) => void;
  /** Called when the next one was asked for, so that this one is written down. */
  readonly written?: (event: RunEvent) => void;
}

/**
 * One prompt to its end, in the conversation of its agent: each event is part of it before the next one is asked for. Returns how
 * the run ended, which the caller reports.
 */
export async function* runPrompt(
  { ports, loop = runAgentLoop }: Pick<OpenAgent, "ports" | "loop">,
  conversation: AgentHistory,
  { prompt, limits, watch, take, written, signal }: PromptOptions,
): AsyncGenerator<RunEvent, RunEnding> {
  const input = conversation.input(prompt, limits);
  const run = (stop: AbortSignal) => loop(input, ports, stop);
  for await (const event of watch === undefined ? run(signal) : watchRun(run, watch, signal)) {
    if (event.type === "run-ended") return event.ending;
    take?.(event);
    conversation.follow(event);
    yield event;
    written?.(event);
  }
  throw new RetinueError("run-without-end", "The run ended without reporting a result.");
}

/**
 * The conversation of an agent over several runs: of the main agent over its prompts, of a teammate over its pieces of work.
 * A transcript is read back in the same way.
 */
export interface AgentHistory {
  /** Changed in place. */
  readonly messages: readonly Message[];
  /** What the loop gets for a run that continues here. */
  input(
    prompt: UserMessage | undefined,
    limits: Pick<LoopInput, "maxTurns" | "lastTurn" | "askWhenSilent">,
  ): LoopInput;
  /** Adds the content of an event. */
  follow(event: RunEvent): void;
  /** A prompt that no model could take leaves the conversation again; whether there was one. */
  undoPrompt(ending: RunEnding): boolean;
  /** Answers calls that were cut off, so that the next run can begin. */
  answerCutOffCalls(): void;
}

export function createAgentHistory(plan: AgentPlan, history: readonly Message[]): AgentHistory {
  const messages = [...history];
  return {
    messages,
    input(prompt, limits) {
      const { system, reminder, effort } = plan;
      return { system, history: messages, prompt, reminder, effort: effort?.value, ...limits };
    },
    follow(event) {
      if (event.type === "user-added" || event.type === "assistant-answered") messages.push(event.message);
      if (event.type === "context-compacted") messages.splice(0, messages.length - event.kept, event.summary);
    },
    undoPrompt(ending) {
      const kept = withoutUndone(messages, ending);
      if (kept.length === messages.length) return false;
      messages.splice(0, messages.length, ...kept);
      return true;
    },
    answerCutOffCalls() {
      const content = interruptedResults(messages);
      if (content.length > 0) messages.push({ role: "user", content });
    },
  };
}

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
  readonly plan: ChildPlan;
  /** Its run. */
  readonly events: TaskRun["events"];
  readonly outputFile: string | undefined;
  /** Where its events are kept and shown. */
  readonly sinks: readonly EventSink[];
  /** Marks it for other processes as waiting for a place, until it runs. */
  readonly enterQueue?: () => void;
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
export function runWatched(
  executor: Executor,
  execution: Execution,
  {
    control,
    clocks,
    signal,
  }: { readonly control: TaskControl; readonly clocks: AgentClocks; readonly signal: AbortSignal },
): AsyncIterable<RunEvent> {
  const { plan } = execution;
  const own = plan.limits?.silenceMs?.value;
  const { backgroundStopMs = 0 } = clocks;
  const stopwatch = createStopwatch(clocks.clock, clocks.tree);
  const life = { lastSign: 0 };
  const showLife = (): void => {
    life.lastSign = stopwatch.elapsed();
  };
  /** A child without a limit of its own gets one once it is not watched any more. */
  const silence = (): SilenceLimit | undefined => {
    if (own !== undefined) return { reportMs: own, stopMs: own * 2 };
    if (control.attended() || backgroundStopMs === 0) return undefined;
    return { reportMs: backgroundStopMs / 2, stopMs: backgroundStopMs };
  };
  return watchRun(
    (stop) => executor.execute(execution, { ...control, stopwatch, showLife }, stop),
    { ...watchOf(plan, clocks, stopwatch), life, silence },
    signal,
  );
}

/** Runs children in this process. */
export function createLocalExecutor(
  open: (plan: ChildPlan, control: TaskControl) => Promise<OpenAgent>,
): Executor {
  return {
    async *execute({ plan, history }, control, signal) {
      const steps = stepsOf(plan);
      yield { type: "spawn-advanced", steps: steps.before };
      const agent = await open(plan, control);
      try {
        const content = [{ type: "text", text: plan.task.prompt } as const];
        const ready = await agent.prepare(content, signal);
        const prompt = { role: "user", content: ready.type === "ready" ? ready.content : content } as const;
        yield { type: "spawn-advanced", steps: steps.after };
        const ending = yield* work(agent, createAgentHistory(plan, history), { prompt, control, signal });
        // Beside what a run took is what was quoted for it.
        yield {
          type: "run-ended",
          ending: plan.quote === undefined ? ending : { ...ending, quote: plan.quote },
        };
      } finally {
        await agent.end(signal);
      }
    },
  };
}

/**
 * Until its work is done; of a teammate, one piece of work after the other in one conversation, each with the limits of a
 * run, and idle in between.
 */
async function* work(
  { plan, ports: own, loop, standby }: OpenAgent,
  conversation: AgentHistory,
  {
    prompt,
    control,
    signal,
  }: { readonly prompt: UserMessage; readonly control: TaskControl; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent, RunEnding> {
  const ports = { ...own, takeMessages: () => [...own.takeMessages(), ...control.takeMessages()] };
  // A child is reminded of its last turn, and asked for an answer where it ends without one.
  const limits = {
    maxTurns: plan.maxTurns?.value ?? Number.POSITIVE_INFINITY,
    lastTurn: true,
    askWhenSilent: true,
  };
  let next = prompt;
  while (true) {
    const ending = yield* runPrompt({ ports, loop }, conversation, {
      prompt: next,
      limits,
      signal,
      written(event) {
        if (event.type === "user-added" && event.message.mail !== undefined)
          standby?.recorded(event.message.mail);
      },
    });
    if (standby === undefined) return ending;
    const last = ending.status === "stopped" || signal.aborted ? ending : standby.over(ending);
    if (last !== undefined) return last;
    conversation.undoPrompt(ending);
    conversation.answerCutOffCalls();
    await standby.report(ending);
    yield { type: "run-idled", ending };
    const wait = () => standby.wait(signal);
    const mail = await (control.stopwatch?.hold(wait) ?? wait()).catch((error: unknown) => {
      if (signal.aborted) return undefined;
      throw error;
    });
    if (mail === undefined) {
      const { status, reason, error } = signal.aborted
        ? endingOfCause(signal.reason, true)
        : ({ status: "completed", reason: "idle_timeout", error: undefined } as const);
      // What it took was counted when it became idle.
      return { status, reason, text: ending.text, ...createTally(ports.now).result(), error };
    }
    await control.takePlace?.(signal);
    await ports.verify?.begin(signal);
    next = mail;
  }
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

import { followMessages } from "../conversation/follow-messages.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent, SpawnStep } from "../conversation/run-event.ts";
import { withoutUndone } from "../conversation/undone-prompts.ts";
import { interruptedResults } from "../journal/rebuild-conversation.ts";
import { endingOfCause, type LoopInput, type LoopPorts } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import { createTally } from "../loop/tally.ts";
import type { AgentPlan, ChildPlan } from "../planning/agent-plan.ts";
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
    const takeMessages = () => [...agent.ports.takeMessages(), ...control.takeMessages()];
    const ports = { ...agent.ports, takeMessages };
    const { standby, loop = runAgentLoop } = agent;
    const events =
      standby === undefined
        ? loop(childInput({ plan, history }, prompt), ports, signal)
        : runTeammate({ plan, history }, { ports, loop, standby, prompt, control, signal });
    for await (const event of events) yield withQuote(event, plan);
  } finally {
    await agent.end(signal);
  }
}

/** Beside what a run took stands what was quoted for it. */
function withQuote(event: RunEvent, { quote }: ChildPlan): RunEvent {
  return quote === undefined || event.type !== "run-ended"
    ? event
    : { ...event, ending: { ...event.ending, quote } };
}

interface TeammateRun {
  readonly ports: LoopPorts;
  readonly loop: typeof runAgentLoop;
  readonly standby: Standby;
  readonly prompt: UserMessage;
  readonly control: TaskControl;
  readonly signal: AbortSignal;
}

/** One piece of work after the other in one conversation, each with the limits of a run; idle in between. */
async function* runTeammate(
  { plan, history }: Execution,
  { ports, loop, standby, prompt, control, signal }: TeammateRun,
): AsyncGenerator<RunEvent> {
  const messages: Message[] = [...history];
  let next: UserMessage = prompt;
  while (true) {
    let ending: RunEnding | undefined;
    const input = childInput({ plan, history: messages }, next);
    for await (const event of loop(input, ports, signal)) {
      if (event.type === "run-ended") ending = event.ending;
      else {
        followMessages(messages, event);
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
    messages.splice(0, messages.length, ...withoutUndone(messages, ending));
    const interrupted = interruptedResults(messages);
    if (interrupted.length > 0) messages.push({ role: "user", content: interrupted });
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

/** What the loop of an agent gets of its plan; how many turns are left is the caller's. */
export function loopInput(
  { system, reminder, effort }: AgentPlan,
  history: readonly Message[],
  prompt?: UserMessage,
): Omit<LoopInput, "maxTurns"> {
  return { system, history, prompt, reminder, effort: effort?.value };
}

/** A child is reminded of its last turn, and asked for an answer where it ends without one. */
function childInput({ plan, history }: Execution, prompt: UserMessage): LoopInput {
  const maxTurns = plan.maxTurns?.value ?? Number.POSITIVE_INFINITY;
  return { ...loopInput(plan, history, prompt), maxTurns, lastTurn: true, askWhenSilent: true };
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

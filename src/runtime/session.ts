import type { Message, UserMessage } from "../conversation/message.ts";
import { addTotals, type RunEnding, type RunEvent, type RunTotals } from "../conversation/run-event.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { interruptedResults } from "../journal/interrupted-calls.ts";
import { runAgentLoop } from "../loop/agent-loop.ts";
import { compactNow } from "../loop/compact-now.ts";
import { isLimitError } from "../loop/limit-reached.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import { tallyEvents } from "../loop/tally-events.ts";
import { watchRun } from "../loop/watch-run.ts";
import type { ModelFacts } from "../model/model.ts";
import type { ChildPlanned } from "../planning/plan-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { Skill } from "../skills/skill.ts";
import { type AgentHandle, type AgentHost, startAgent } from "../tasks/agent-handle.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import { readCompactCommand } from "./compact-command.ts";
import { preparePrompt } from "./prepare-prompt.ts";
import { type RunHandle, startRun } from "./run-handle.ts";
import { createLimits } from "./session-limits.ts";
import { createPorts, type MainParts } from "./session-ports.ts";
import { createSessionRecovery } from "./session-recovery.ts";
import type { SessionServer } from "./session-servers.ts";
import { describeTask, type SpawnOptions } from "./spawn-options.ts";
import { stopChildren } from "./stop-children.ts";
import { type LoopTool, toolsForLoops } from "./tools-for-loops.ts";
import { outputReminder } from "./typed-output.ts";

/** One conversation with the main agent, over any number of prompts. */
export interface Session<Output = unknown> extends AsyncDisposable {
  readonly plan: RunPlan;
  /** What is known of the model that answers. */
  readonly model: ModelFacts;
  /** Agents, settings and plugins as they were found when the session was opened. */
  readonly discovered: DiscoveredAgents;
  /** The skills of this session, for people and agents. */
  readonly skills: readonly Skill[];
  /** How the MCP servers of this session are doing now, with those that are held back and why. */
  mcpServers(): readonly SessionServer[];
  /** Starts the next run of the conversation; the one before must have ended. */
  prompt(content: UserMessage["content"], options?: { readonly signal?: AbortSignal }): RunHandle<Output>;
  /** The same as a bare stream of events, which runs only as fast as it is read. Leaving it stops the run. */
  stream(content: UserMessage["content"], signal: AbortSignal): AsyncIterable<RunEvent>;
  /** Replaces the older part of the conversation by a summary now; the result says how much it made of how much. */
  compact(instructions?: string, options?: { readonly signal?: AbortSignal }): RunHandle<Output>;
  messages(): readonly Message[];
  /** The child agents of this session: list, watch, stop, detach, send. */
  readonly tasks: TaskManager;
  /** Where its children run, for those who start them by other ways. */
  readonly agentHost: AgentHost;
  /** Starts a child as the main agent would, with its rights. */
  spawn(agentType: string, prompt: string, options?: SpawnOptions): AgentHandle;
  /** What a child would be, decided completely, without starting it. */
  planAgent(request: SpawnRequest): Promise<ChildPlanned>;
  /** Agent, TaskOutput and TaskStop for a loop of the program's own, as far as this session has them. */
  tools(): readonly LoopTool[];
  /** What children in the background have told since the last asking; for a loop of the program's own. */
  takeNotices(): readonly UserMessage[];
}

export function createSession<Output>(parts: MainParts): Session<Output> {
  const { plan, output } = parts;
  const messages: Message[] = [...parts.history];
  const ports = createPorts(parts);
  const limits = createLimits(plan);
  const agentHost: AgentHost = { spawner: parts.children.spawner, tasks: parts.tasks };
  const end = new AbortController();
  const handles = new Set<Promise<unknown>>();
  const recovery = createSessionRecovery(parts.recover);
  let isFirst = parts.history.length === 0;
  let isBusy = false;

  async function* stream(content: UserMessage["content"], signal: AbortSignal): AsyncGenerator<RunEvent> {
    const command = parts.slashCommands ? readCompactCommand(content) : undefined;
    yield* command === undefined ? answer(content, signal) : compact(command.instructions, signal);
  }

  async function* compact(
    instructions: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, void> {
    refuseWhen(end.signal.aborted, "session-closed", "The session is closed, so it cannot be compacted.");
    refuseWhen(isBusy, "session-busy", "The session works on a prompt, so it cannot be compacted now.");
    isBusy = true;
    const stop = AbortSignal.any([signal, end.signal]);
    const input: LoopInput = { ...inputOf(plan, messages), ...limits.left(undefined) };
    try {
      for await (const event of watched((left) => compactNow({ input, instructions }, ports, left), stop)) {
        record(event);
        follow(event);
        yield event;
      }
    } finally {
      isBusy = false;
    }
  }

  /** The conversation as the next run goes on with it. */
  function follow(event: RunEvent): void {
    if (event.type === "user-added" || event.type === "assistant-answered") messages.push(event.message);
    if (event.type === "context-compacted") messages.splice(0, messages.length - event.kept, event.summary);
  }

  async function* answer(content: UserMessage["content"], signal: AbortSignal): AsyncGenerator<RunEvent> {
    refuseWhen(end.signal.aborted, "session-closed", "The session is closed, so it takes no more prompts.");
    refuseWhen(isBusy, "session-busy", "The session still works on the prompt before this one.");
    isBusy = true;
    const left = new AbortController();
    const first = isFirst ? withInitialPrompt(content, plan.initialPrompt) : content;
    isFirst = false;
    output?.begin();
    const stop = AbortSignal.any([signal, left.signal, end.signal]);
    try {
      await parts.begin?.();
      yield* recovery.begin(stop);
      const ready = await preparePrompt({ content, first }, parts, stop);
      if (ready.type === "ready") yield* events({ role: "user", content: ready.content }, stop);
      else yield { type: "run-ended", ending: ready.ending };
    } finally {
      parts.skills?.endTurn();
      left.abort(new RetinueError("left", "Nobody reads the events of this run any more."));
      const interrupted = interruptedResults(messages);
      if (interrupted.length > 0) messages.push({ role: "user", content: interrupted });
      isBusy = false;
    }
  }

  async function* events(prompt: UserMessage, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
    let next = prompt;
    let sum: RunEnding | undefined;
    const since = parts.watch?.stopwatch.elapsed();
    while (true) {
      const ending: RunEnding = joinEndings(sum, yield* runOnce(next, signal, { before: sum, since }));
      for await (const event of stopChildren(parts.tasks, { ending, signal })) {
        record(event);
        follow(event);
        yield event;
      }
      const isMissing = ending.status === "completed" && output !== undefined && output.value() === undefined;
      if (isMissing && ending.reason !== "output_given") output.miss();
      const limit = isMissing && !output.hasGivenUp() ? limits.reached(ending) : undefined;
      if (!isMissing || output.hasGivenUp() || limit !== undefined) {
        const own = limits.explain(finalEnding(ending, { isMissing, limit, handedIn: output?.value() }));
        const last = recovery.count(withTree(own, parts.tasks.takeTotals()));
        record({ type: "run-ended", ending: last });
        yield { type: "run-ended", ending: last };
        return;
      }
      sum = ending;
      next = { role: "user", content: [{ type: "text", text: outputReminder }] };
    }
  }

  /** Passes everything on but the end, which the caller decides about. */
  async function* runOnce(
    prompt: UserMessage,
    signal: AbortSignal,
    { before, since }: { readonly before: RunEnding | undefined; readonly since: number | undefined },
  ): AsyncGenerator<RunEvent, RunEnding> {
    const input: LoopInput = { ...inputOf(plan, messages, prompt), ...limits.left(before) };
    let hasAnswered = false;
    const tally = tallyEvents(ports.now);
    try {
      for await (const event of watched((stop) => runAgentLoop(input, ports, stop), signal, since)) {
        if (event.type === "run-ended") {
          // The text of an earlier prompt is no result of this one.
          return hasAnswered ? event.ending : { ...event.ending, text: "" };
        }
        record(event);
        hasAnswered ||= event.type === "assistant-answered";
        tally.hear(event);
        follow(event);
        yield event;
      }
    } catch (error) {
      // Its time was up and it did not heed that; a limit is no failure of whoever waits for the result.
      if (isLimitError(error)) return tally.endedBy(error);
      throw error;
    }
    throw new RetinueError("run-without-end", "The run ended without saying how.");
  }

  /** Under the clocks; the agent's own time counts from where the prompt began, in however many parts it is worked on. */
  function watched(
    run: (signal: AbortSignal) => AsyncIterable<RunEvent>,
    signal: AbortSignal,
    since?: number,
  ): AsyncIterable<RunEvent> {
    return parts.watch === undefined ? run(signal) : watchRun(run, { ...parts.watch, since }, signal);
  }

  /** A closed session has given its file back; what still happens in it is answered as interrupted when it is resumed. */
  function record(event: RunEvent): void {
    if (!end.signal.aborted) parts.record(event);
  }

  function start(
    events: (signal: AbortSignal) => AsyncIterable<RunEvent>,
    signal: AbortSignal | undefined,
  ): RunHandle<Output> {
    const handle = startRun<Output>({
      events,
      sessionId: () => plan.sessionId,
      ...(signal === undefined ? {} : { signal }),
    });
    handles.add(handle.result);
    const forget = (): void => void handles.delete(handle.result);
    handle.result.then(forget, forget);
    return handle;
  }

  return {
    plan,
    model: parts.model.facts,
    discovered: parts.discovered,
    skills: parts.skills?.all ?? [],
    mcpServers: parts.mcpServers,
    messages: () => messages,
    tasks: parts.tasks,
    agentHost,
    spawn: (agentType, prompt, options = {}) =>
      startAgent(
        { description: describeTask(agentType, prompt), ...options, agentType, prompt, origin: "program" },
        agentHost,
      ),
    tools: () => toolsForLoops(createPorts(parts), end.signal),
    takeNotices: parts.children.takeMessages,
    planAgent: (request) => parts.children.spawner.plan(request),
    stream,
    prompt: (content, options) => start((signal) => stream(content, signal), options?.signal),
    compact: (instructions, options) => start((signal) => compact(instructions, signal), options?.signal),
    async [Symbol.asyncDispose]() {
      if (end.signal.aborted) return;
      end.abort(new RetinueError("session-closed", "The session was closed."));
      await Promise.allSettled(handles);
      await parts.dispose();
    },
  };
}

/** Adds what the children took; a run without children is its own tree. */
function withTree(ending: RunEnding, children: RunTotals | undefined): RunEnding {
  return children === undefined ? ending : { ...ending, tree: addTotals(ending.totals, children) };
}

function refuseWhen(applies: boolean, code: string, message: string): void {
  if (applies) throw new RetinueError(code, message);
}

function inputOf(
  plan: RunPlan,
  history: readonly Message[],
  prompt?: UserMessage,
): Omit<LoopInput, "maxTurns"> {
  return {
    system: plan.system,
    history,
    ...(prompt === undefined ? {} : { prompt }),
    ...(plan.reminder === undefined ? {} : { reminder: plan.reminder }),
    ...(plan.effort === undefined ? {} : { effort: plan.effort.value }),
  };
}

function withInitialPrompt(
  content: UserMessage["content"],
  initial: string | undefined,
): UserMessage["content"] {
  if (initial === undefined) return content;
  const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return [{ type: "text", text: initial }, ...blocks];
}

/** A run that had to be reminded is one run to its caller. */
function joinEndings(before: RunEnding | undefined, last: RunEnding): RunEnding {
  if (before === undefined) return last;
  return {
    ...last,
    text: last.text === "" ? before.text : last.text,
    denials: [...before.denials, ...last.denials],
    totals: addTotals(before.totals, last.totals),
  };
}

interface OutputResult {
  readonly isMissing: boolean;
  readonly limit: string | undefined;
  readonly handedIn: { readonly output: unknown } | undefined;
}

function finalEnding(ending: RunEnding, { isMissing, limit, handedIn }: OutputResult): RunEnding {
  if (handedIn !== undefined) return { ...ending, output: handedIn.output };
  if (!isMissing) return ending;
  if (limit !== undefined) return { ...ending, status: "partial", reason: limit };
  const error = "The agent did not hand in a result of the form that was asked for.";
  return { ...ending, status: "failed", reason: "max_structured_output_retries", error };
}

import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import { type Message, textOf, type UserMessage } from "../conversation/message.ts";
import { addTotals, type RunEnding, type RunEvent, type RunTotals } from "../conversation/run-event.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { interruptedResults } from "../journal/interrupted-result.ts";
import { compactNow } from "../loop/compact-now.ts";
import { isLimitError } from "../loop/limit-reached.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import { tallyEvents } from "../loop/tally-events.ts";
import { type RunWatch, watchRun } from "../loop/watch-run.ts";
import type { ModelFacts } from "../model/model.ts";
import type { ChildPlan, ChildPlanned } from "../planning/plan-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { Skill } from "../skills/skill.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import type { EquippedAgent } from "./agent/equip-agent.ts";
import { openAgent } from "./agent/open-agent.ts";
import { type AgentHandle, type AgentHost, startAgent } from "./agent-handle.ts";
import { checkAgentType, checkOptions, checkPrompt } from "./check-options.ts";
import type { Children } from "./children/open-children.ts";
import { stopChildren } from "./children/stop-children.ts";
import { preparePrompt } from "./prepare-prompt.ts";
import { type RunHandle, startRun } from "./run-handle.ts";
import type { SessionServer, SessionServers } from "./servers/session-servers.ts";
import { createLimits } from "./session-limits.ts";
import { createSessionRecovery } from "./session-recovery.ts";
import { type ChildOptions, spawnRequestOf } from "./spawn-options.ts";
import { type LoopTool, toolsForLoops } from "./tools-for-loops.ts";
import { type ChildOutputs, outputReminder, type TypedOutput } from "./typed-output.ts";

/** One conversation with the main agent, over any number of prompts. */
export interface Session<Output = unknown> extends AsyncDisposable {
  readonly id: string;
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
  run(content: UserMessage["content"], options?: { readonly signal?: AbortSignal }): RunHandle<Output>;
  /** The same as `run`. */
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
  spawn<ChildOutput = unknown>(
    agentType: string,
    prompt: string,
    options?: ChildOptions<ChildOutput>,
  ): AgentHandle<ChildOutput>;
  /** The same as disposing of it: ends what runs and gives back what it holds. */
  close(): Promise<void>;
  /** What a child would be, decided completely, without starting it. */
  planAgent(request: SpawnRequest): Promise<ChildPlanned>;
  /** Carries out a plan that was decided before, perhaps by another process; rejects where this one cannot. */
  runPlan(plan: ChildPlan): AgentHandle;
  /** Agent, TaskOutput and TaskStop for a loop of the program's own, as far as this session has them. */
  tools(): readonly LoopTool[];
  /** What children in the background have told since the last asking; for a loop of the program's own. */
  takeNotices(): readonly UserMessage[];
}

/** Everything a session is made of; putting it together did the I/O. */
export interface SessionParts {
  readonly plan: RunPlan;
  readonly agent: EquippedAgent;
  readonly discovered: DiscoveredAgents;
  readonly history: readonly Message[];
  /** Writes an event down before the next one is asked for. */
  readonly record: (event: RunEvent) => void;
  readonly commit?: (() => Promise<void>) | undefined;
  readonly output?: TypedOutput | undefined;
  readonly children: Children;
  /** The typed outputs that children were asked for, by agent id. */
  readonly childOutputs: ChildOutputs;
  readonly tasks: TaskManager;
  readonly mcpServers: SessionServers["states"];
  /** Whether `/name` in a prompt calls a skill. */
  readonly slashCommands: boolean;
  /** Called before each prompt is worked on: makes what opening a session alone does not. */
  readonly begin?: () => Promise<void>;
  /** Called once, before the first prompt: resumes what a crash has left, and reports it. */
  readonly recover?: (signal: AbortSignal) => Promise<readonly InterruptedAgent[]>;
  /** The clocks of its runs; absent limits nothing. */
  readonly watch?: RunWatch;
  readonly dispose: (endAgent: () => Promise<void>) => Promise<void>;
}

export function createSession<Output>(parts: SessionParts): Session<Output> {
  const { plan, output } = parts;
  const messages: Message[] = [...parts.history];
  const { skills, parts: agentParts } = parts.agent;
  const agent = openAgent(plan, agentParts);
  const { ports } = agent;
  const limits = createLimits(plan);
  const agentHost: AgentHost = {
    spawner: parts.children.spawner,
    tasks: parts.tasks,
    outputs: parts.childOutputs,
  };
  const end = new AbortController();
  const handles = new Set<Promise<unknown>>();
  const recovery = createSessionRecovery(parts.recover);
  let isFirst = parts.history.length === 0;
  let isBusy = false;
  /** Why the record takes nothing more. */
  let unrecorded: unknown;

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
      const ready = await preparePrompt({ content, first }, { ...parts, prepare: agent.prepare }, stop);
      if (ready.type === "ready") yield* events({ role: "user", content: ready.content }, stop);
      else yield { type: "run-ended", ending: ready.ending };
    } finally {
      skills.endTurn();
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
        recordEnding(last);
        // Whoever hears of the end must not find it cut off later; a disk that fails now is told of when the file is closed.
        await parts.commit?.().catch(() => undefined);
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
        // First what it took: an answer that cannot be kept is paid for all the same.
        tally.hear(event);
        record(event);
        hasAnswered ||= event.type === "assistant-answered";
        follow(event);
        yield event;
      }
    } catch (error) {
      // Its time was up and it did not heed that, or its record takes no more: neither is a failure of whoever waits.
      if (isLimitError(error) || error === unrecorded) return tally.endedBy(error);
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
    if (end.signal.aborted) return;
    try {
      parts.record(event);
    } catch (error) {
      unrecorded = error;
      throw error;
    }
  }

  /** A record that takes no more, as on a full disk, must not keep the result from whoever waits for it. */
  function recordEnding(ending: RunEnding): void {
    try {
      record({ type: "run-ended", ending });
    } catch {
      // Said by the ending itself, or by the notice when the file is closed.
    }
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

  const run: Session<Output>["run"] = (content, options = {}) => {
    checkPrompt("session.run", content);
    checkOptions("session.run", options);
    return start((signal) => stream(content, signal), options.signal);
  };

  async function close(): Promise<void> {
    if (end.signal.aborted) return;
    end.abort(new RetinueError("session-closed", "The session was closed."));
    await Promise.allSettled(handles);
    await parts.dispose(agent.end);
  }

  return {
    id: plan.sessionId,
    plan,
    model: agentParts.model.facts,
    discovered: parts.discovered,
    skills: skills.all,
    mcpServers: parts.mcpServers,
    messages: () => messages,
    tasks: parts.tasks,
    agentHost,
    spawn(agentType, prompt, options = {}) {
      checkAgentType("session.spawn", agentType);
      checkPrompt("session.spawn", prompt);
      checkOptions("session.spawn", options);
      return startAgent(spawnRequestOf(agentType, prompt, options), {
        host: agentHost,
        sessionId: () => plan.sessionId,
        signal: options.signal,
        output: options.output,
      });
    },
    tools: () => toolsForLoops(openAgent(plan, agentParts).ports, end.signal),
    takeNotices: parts.children.takeMessages,
    runPlan: (own) => startAgent({ plan: own }, { host: agentHost, sessionId: () => plan.sessionId }),
    planAgent: (request) => parts.children.spawner.plan(request),
    stream,
    run,
    prompt: run,
    compact: (instructions, options) => start((signal) => compact(instructions, signal), options?.signal),
    close,
    [Symbol.asyncDispose]: close,
  };
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

/** What a prompt that is exactly `/compact` or `/compact …` asks of the summary; undefined for any other prompt. */
export function readCompactCommand(
  content: UserMessage["content"],
): { readonly instructions: string | undefined } | undefined {
  if (typeof content !== "string" && content.some(({ type }) => type !== "text")) return undefined;
  const match = /^\s*\/compact(\s.*)?$/s.exec(textOf({ role: "user", content }));
  if (match === null) return undefined;
  const instructions = match[1]?.trim() ?? "";
  return { instructions: instructions === "" ? undefined : instructions };
}

/** Adds what the children took; a run without children is its own tree. */
function withTree(ending: RunEnding, children: RunTotals | undefined): RunEnding {
  return children === undefined ? ending : { ...ending, tree: addTotals(ending.totals, children) };
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

/** What became of a result of a certain form that was asked for. */
interface OutputResult {
  readonly isMissing: boolean;
  readonly limit: string | undefined;
  readonly handedIn: { readonly output: unknown } | undefined;
}

function finalEnding(ending: RunEnding, { isMissing, limit, handedIn }: OutputResult): RunEnding {
  if (handedIn !== undefined) return { ...ending, output: handedIn.output };
  if (!isMissing) return ending;
  if (limit !== undefined) return { ...ending, status: "partial", reason: limit };
  const error = "The agent did not return a result matching the schema.";
  return { ...ending, status: "failed", reason: "max_structured_output_retries", error };
}

import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import type { Skill } from "@retinue/config/skills/skill.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { ModelFacts } from "../models/model.ts";
import type { AgentPlan, ChildPlan } from "../planning/agent-plan.ts";
import type { ChildPlanned, SpawnRequest } from "../planning/agent-request.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import type { StoppedBy, TaskEvent, TaskManager } from "../tasks/task-manager.ts";
import type { Tool } from "../tools/tool.ts";
import { openAgent, toolsOf } from "./agent/open-agent.ts";
import { plannedTools } from "./agent/open-child.ts";
import { planBelow } from "./agent/open-nested.ts";
import { compact, openConversation, type SessionParts, type StreamOptions, stream } from "./conversation.ts";
import { type LoopTool, toolsForLoops } from "./loop-tools/tools-for-loops.ts";
import { createIntegration, type Integrated } from "./merge/create-integration.ts";
import type { IntegrateOption, MergeHandle, MergeOptions } from "./merge/merge-options.ts";
import type { MergeParts } from "./merge/run-merge.ts";
import { startMerge } from "./merge/start-merge.ts";
import { checkAgentType, checkOptions, checkPrompt, runtimeChecks } from "./options/check-options.ts";
import { type ChildOptions, spawnRequestOf } from "./options/spawn-options.ts";
import type { OutputSchema } from "./options/typed-output.ts";
import { type AgentHandle, type AgentHost, type RunHandle, startAgent, startRun } from "./run-handle.ts";
import type { SessionServer } from "./servers/session-servers.ts";
import type { SessionWorkflows } from "./workflows/session-workflows.ts";

export type { AgentPlan as RunPlan } from "../planning/agent-plan.ts";
export type { TaskEvent } from "../tasks/task-manager.ts";

/** The options of one run of a session. */
interface SessionRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** At the end, brings the changes of the children back that are in worktrees of their own. */
  readonly integrate?: IntegrateOption | undefined;
}

/** One conversation with the main agent, over any number of prompts. */
export interface Session<Output = unknown> extends AsyncDisposable {
  readonly id: string;
  readonly plan: AgentPlan;
  /** What is known of the model that answers. */
  readonly model: ModelFacts;
  /** Agents, settings and plugins as they were found when the session was opened. */
  readonly discovered: DiscoveredAgents;
  /** The skills of this session, for people and agents. */
  readonly skills: readonly Skill[];
  /** How the MCP servers of this session are doing now, with those that are held back and why. */
  mcpServers(): readonly SessionServer[];
  /** Starts the next run of the conversation; the one before must have ended. */
  run(content: UserMessage["content"], options?: SessionRunOptions): RunHandle<Output>;
  /** @deprecated The same as `run`. */
  prompt(content: UserMessage["content"], options?: SessionRunOptions): RunHandle<Output>;
  /** The same as a bare stream of events, which runs only as fast as it is read. Leaving it stops the run. */
  stream(
    content: UserMessage["content"],
    signal: AbortSignal,
    options?: StreamOptions,
  ): AsyncIterable<RunEvent>;
  /** Replaces the older part of the conversation by a summary now; the result has how much it made of how much. */
  compact(instructions?: string, options?: { readonly signal?: AbortSignal }): RunHandle<Output>;
  messages(): readonly Message[];
  /** The text so far of the answer that the model of the main agent, or of a child, is giving; empty between answers. */
  partialText(agentId?: string): string;
  /** Gives the session a title by which it can be resumed. */
  rename(title: string): void;
  /** The child agents of this session: list, watch, stop, detach, send. */
  readonly tasks: SessionTasks;
  /** The workflows of this session: those there are, and those that run; absent where they are switched off. */
  readonly workflows?: SessionWorkflows;
  /** Moves the commands that the main agent waits for to the background, so that it continues immediately; returns their descriptions. */
  moveCommands(): readonly string[];
  /** Where its children run, for callers that start them by other ways. */
  readonly agentHost: AgentHost;
  /** Starts a child as the main agent would, with its rights. */
  spawn<ChildOutput = unknown>(
    agentType: string,
    prompt: string,
    options?: ChildOptions<ChildOutput>,
  ): AgentHandle<ChildOutput>;
  /** Brings the changes of its children back that are in worktrees of their own: in order, checked, onto an integration branch. */
  merge(options?: MergeOptions): MergeHandle;
  /** What a merge of other children needs, for callers that merge by other ways. */
  readonly mergeParts: MergeParts;
  /** The same as disposing of it: ends what runs and gives back what it holds. */
  close(): Promise<void>;
  /** What a child would be, decided completely, without starting it; `below`: the planned subagent that would start it. */
  planAgent(
    request: SpawnRequest,
    options?: { readonly below?: ChildPlan | undefined },
  ): Promise<ChildPlanned>;
  /**
   * What children, planned or not, would take, together and each, and what they may do: from earlier runs on this machine,
   * else estimated.
   * Starts nothing, and nothing of it leaves the machine.
   */
  quote(wanted: readonly (QuoteRequest | ChildPlan)[]): Promise<BatchQuote>;
  /** The tools as a model sees them: those of the main agent, or those that a planned child would have. */
  toolsOf(plan?: ChildPlan): Promise<readonly Tool[]>;
  /** Carries out a plan that was decided before, perhaps by another process; rejects where this one cannot. */
  runPlan(plan: ChildPlan, options?: { readonly output?: OutputSchema | undefined }): AgentHandle;
  /** Agent, TaskOutput and TaskStop for a loop of the program's own, or the tools named, as far as this session has them. */
  loopTools(names?: readonly string[]): readonly LoopTool[];
  /** @deprecated The same as `loopTools`. */
  tools(names?: readonly string[]): readonly LoopTool[];
  /** What children in the background have reported since the last asking; for a loop of the program's own. */
  takeNotices(): readonly UserMessage[];
  /** Calls back when members of the team may have written to the main agent; the result ends it. */
  onTeamMail(listener: () => void): () => void;
  /** Whether members of the team work or are about to, so that there may soon be mail for the main agent. */
  isTeamBusy(): boolean;
  /** Writes to a member of the team, which wakes when it is idle; false when the agent is no member. */
  messageTeammate(agentId: string, text: string): Promise<boolean>;
}

/** A child that might be started: its type and its task, with what `session.spawn()` takes besides. */
export interface QuoteRequest extends Omit<ChildOptions, "output" | "signal"> {
  readonly agentType: string;
  readonly prompt: string;
}

export function createSession<Output>(parts: SessionParts): Session<Output> {
  const { plan, services, children } = parts;
  const { tasks } = children.session;
  const { skills, parts: agentParts } = parts.agent;
  const live = openConversation(parts);
  const { end, agent } = live;
  const agentHost: AgentHost = {
    spawner: children.spawner,
    askBeforeStart: children.batch.ask,
    tasks,
    outputs: children.session.outputs,
    spawnInTeam: children.team?.spawn,
  };
  const sessionId = (): string => plan.sessionId;
  const { start, settled } = createRunStarter<Output>({
    sessionId,
    tasks,
    wantsOutput: parts.output !== undefined,
  });

  const loopTools: Session["loopTools"] = (names) => {
    if (names !== undefined) checkArgument("The first argument of session.loopTools()", checks.texts, names);
    return toolsForLoops(openAgent(plan, agentParts).ports, end.signal, names);
  };

  const run: Session<Output>["run"] = (content, options = {}) => {
    checkPrompt("session.run", content);
    checkOptions("session.run", options);
    const integration = createIntegration(options.integrate);
    return start((signal) => integration.around(stream(live, content, signal), merge, signal), {
      signal: options.signal,
      integrated: integration.outcome,
    });
  };

  const mergeParts: MergeParts = { services, stopwatch: parts.watch.stopwatch, plan, host: agentHost };
  const merges = new Set<Promise<unknown>>();
  const merge: Session["merge"] = (options) => {
    const source = { parts: mergeParts, session: { id: sessionId() }, end: end.signal };
    const handle = startMerge("session.merge", source, options);
    merges.add(handle.result);
    const forget = (): void => void merges.delete(handle.result);
    handle.result.then(forget, forget);
    return handle;
  };

  async function close(): Promise<void> {
    if (end.signal.aborted) return;
    end.abort(new RetinueError("session-closed", "The session was closed."));
    await Promise.all([settled(), Promise.allSettled(merges)]);
    await parts.dispose(agent.end);
  }

  return {
    id: plan.sessionId,
    plan,
    model: agentParts.model.facts,
    discovered: services.runtime.discovered,
    skills: skills?.all ?? [],
    mcpServers: services.servers.states,
    messages: () => live.history.messages,
    partialText(agentId = "main") {
      checkArgument("The first argument of session.partialText()", checks.filled, agentId);
      return services.liveText.partialText(agentId);
    },
    rename(title) {
      checkArgument("The title of session.rename()", checks.filled, title);
      parts.record.rename?.(title);
    },
    tasks: createSessionTasks(tasks),
    workflows: children.workflows,
    moveCommands: () => services.tools.moveCommands(plan.agent.id),
    agentHost,
    loopTools,
    tools: loopTools,
    ...mailOf(children),
    ...startsOf(children, agentHost, sessionId),
    async toolsOf(own) {
      if (own === undefined) return toolsOf(agentParts.capabilities);
      checkArgument("The plan of session.toolsOf()", runtimeChecks.plan, own);
      return plannedTools(own, children.session);
    },
    stream(content, signal, options) {
      checkArgument("The signal of session.stream()", checks.signal, signal);
      return stream(live, content, signal, options);
    },
    run,
    prompt: run,
    merge,
    mergeParts,
    compact(instructions, options = {}) {
      if (instructions !== undefined)
        checkArgument("The instructions of session.compact()", checks.text, instructions);
      checkOptions("session.compact", options);
      return start((signal) => compact(live, instructions, signal), options);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

const requestShape = checks.shape({ agentType: checks.filled, prompt: checks.text }, ["agentType", "prompt"]);

const quoteShape = checks.listOf(
  checks.either("must be a plan, or an object with agentType and prompt", requestShape, runtimeChecks.plan),
  "plans, or objects with agentType and prompt",
);

/** Children as the program starts them: by name, or by a plan that was decided here or elsewhere. */
function startsOf(
  { spawner, session }: SessionParts["children"],
  host: AgentHost,
  sessionId: () => string,
): Pick<Session, "spawn" | "runPlan" | "planAgent" | "quote"> {
  return {
    async quote(wanted) {
      checkArgument("The first argument of session.quote()", quoteShape, wanted);
      const requests = wanted.map((each) => {
        if ("task" in each) return each;
        const { agentType, prompt, ...options } = each;
        checkOptions("session.quote", options);
        return spawnRequestOf(agentType, prompt, options);
      });
      return (await session.quotes.batch(requests, spawner.plan)).quote;
    },
    spawn(agentType, prompt, options = {}) {
      checkAgentType("session.spawn", agentType);
      checkPrompt("session.spawn", prompt);
      checkOptions("session.spawn", options);
      return startAgent(spawnRequestOf(agentType, prompt, options), {
        host,
        sessionId,
        signal: options.signal,
        output: options.output,
      });
    },
    runPlan(plan, { output } = {}) {
      checkArgument("The plan of session.runPlan()", runtimeChecks.plan, plan);
      return startAgent({ plan }, { host, sessionId, output });
    },
    async planAgent(request, { below } = {}) {
      checkArgument("The request of session.planAgent()", requestShape, request);
      if (below !== undefined) checkArgument("The plan of session.planAgent()", runtimeChecks.plan, below);
      return below === undefined ? spawner.plan(request) : planBelow(request, session, below);
    },
  };
}

/** What children and members of the team report, and writing to them. */
function mailOf({
  takeMessages,
  team,
}: SessionParts["children"]): Pick<
  Session<unknown>,
  "takeNotices" | "onTeamMail" | "isTeamBusy" | "messageTeammate"
> {
  return {
    takeNotices() {
      const notices = takeMessages();
      team?.hold(notices);
      return notices;
    },
    onTeamMail(listener) {
      checkArgument("The listener of session.onTeamMail()", checks.call, listener);
      return team?.onMail(listener) ?? (() => undefined);
    },
    isTeamBusy: () => team?.isBusy() === true,
    async messageTeammate(agentId, text) {
      checkArgument("The first argument of session.messageTeammate()", checks.filled, agentId);
      checkArgument("The second argument of session.messageTeammate()", checks.filled, text);
      return (await team?.writeTo(agentId, text)) === true;
    },
  };
}

interface StartOptions {
  readonly signal?: AbortSignal | undefined;
  readonly integrated?: () => Integrated;
}

/** Starts runs, and knows when all of them have ended. */
function createRunStarter<Output>({
  sessionId,
  tasks,
  wantsOutput,
}: {
  readonly sessionId: () => string;
  readonly tasks: TaskManager;
  readonly wantsOutput: boolean;
}): {
  start(events: (signal: AbortSignal) => AsyncIterable<RunEvent>, options: StartOptions): RunHandle<Output>;
  settled(): Promise<unknown>;
} {
  const results = new Set<Promise<unknown>>();
  return {
    start(events, { signal, integrated }) {
      const handle = startRun<Output>({
        async *events(stop, watchChildren) {
          using _children = watchChildren(tasks);
          yield* events(stop);
        },
        sessionId,
        signal,
        wantsOutput,
        integrated,
      });
      results.add(handle.result);
      const forget = (): void => void results.delete(handle.result);
      handle.result.then(forget, forget);
      return handle;
    },
    settled: () => Promise.allSettled(results),
  };
}

/** The child agents of a session, as its program sees them. An id that is not known gives undefined or false. */
export interface SessionTasks {
  list(): readonly TaskState[];
  get(id: string): TaskState | undefined;
  /** The state when the child has ended, when it was moved to the background, or when the signal is aborted. */
  wait(id: string, options?: { readonly signal?: AbortSignal }): Promise<TaskState | undefined>;
  /** The state when the child has ended; moving it to the background does not count. */
  ended(id: string): Promise<TaskState | undefined>;
  /** Ends a child; its result names who ended it: the program, unless it says otherwise. */
  stop(id: string, by?: StoppedBy): Promise<TaskState | undefined>;
  /** Stops waiting: the caller is freed immediately and the child continues unattended. */
  detach(id: string): boolean;
  /** Between its turns the child reads it. False when it has ended or is not known. */
  send(id: string, message: string | UserMessage): boolean;
  /** The events of all children from now on. Leaving the loop, `return()` or the signal ends the watching. */
  watch(options?: { readonly signal?: AbortSignal }): AsyncIterableIterator<TaskEvent>;
  /** Calls back with each event as it happens; the returned function ends it. */
  onEvent(listener: (event: TaskEvent) => void): () => void;
}

const stoppers = ["user", "parent", "program", "session"] as const satisfies readonly StoppedBy[];

function createSessionTasks(tasks: TaskManager): SessionTasks {
  const checkId = (method: string, id: unknown): void =>
    checkArgument(`The first argument of tasks.${method}()`, checks.filled, id);
  return {
    list: () => tasks.list(),
    get(id) {
      checkId("get", id);
      return tasks.get(id);
    },
    async wait(id, options = {}) {
      checkId("wait", id);
      checkOptions("tasks.wait", options);
      return tasks.wait(id, { signal: options.signal ?? new AbortController().signal });
    },
    async ended(id) {
      checkId("ended", id);
      return tasks.ended(id);
    },
    async stop(id, by = "program") {
      checkId("stop", id);
      checkArgument("The second argument of tasks.stop()", checks.oneOf(stoppers), by);
      return tasks.stop(id, by);
    },
    detach(id) {
      checkId("detach", id);
      return tasks.detach(id);
    },
    send(id, message) {
      checkId("send", id);
      if (typeof message === "string") {
        checkPrompt("tasks.send", message);
        return tasks.send(id, { role: "user", content: message });
      }
      checkArgument("The message of tasks.send()", checks.record, message);
      checkPrompt("tasks.send", message.content);
      return tasks.send(id, message);
    },
    watch(options = {}) {
      checkOptions("tasks.watch", options);
      const events = tasks.watch();
      const { signal } = options;
      if (signal?.aborted === true) void events.return?.();
      signal?.addEventListener("abort", () => void events.return?.(), { once: true });
      return events;
    },
    onEvent(listener) {
      checkArgument("The listener of tasks.onEvent()", checks.call, listener);
      return tasks.onEvent(listener);
    },
  };
}

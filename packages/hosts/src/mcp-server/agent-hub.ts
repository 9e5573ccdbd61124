import { randomUUID } from "node:crypto";
import { abortable, sleep } from "@retinue/base/foundation/abortable.ts";
import { type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type AgentTree, openTree } from "@retinue/core/kernel/agent-tree.ts";
import type { HostedRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { LoopToolResult } from "@retinue/core/kernel/loop-tools/tools-for-loops.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { type AgentView, viewOfState, viewOfTranscript } from "@retinue/core/kernel/project/agent-view.ts";
import type { FoundTask } from "@retinue/core/kernel/project/project-tasks.ts";
import { submitElsewhere } from "@retinue/core/kernel/project/submit-elsewhere.ts";
import { formsTeams } from "@retinue/core/kernel/teams/create-parent-mail.ts";
import { type AgentState, hasEnded } from "@retinue/core/protocol/agent-state.ts";
import type { DiscoveredAgents } from "../../../../src/definitions.ts";
import { answerQuestions } from "../shared/answer-questions.ts";
import { createPendingCall, type HubAgents, type PendingCall } from "./pending-call.ts";
import type { PendingCalls } from "./pending-calls.ts";

/** What a client says when it starts an agent. */
export type HubRequest = Omit<Parameters<AgentTree["spawn"]>[0], "callId">;

export interface HubClient {
  /** The tool that was called. */
  readonly tool: string;
  /** How many questions it takes during one call; 0 when it cannot be asked. */
  readonly maxQuestions: number;
}

export type HubMessage =
  | { readonly type: "queued"; readonly agentId: string }
  | { readonly type: "resumed"; readonly pendingCall: PendingCall };

/** Everything that clients can do with agents; all clients of a server share it. */
export interface AgentHub extends AsyncDisposable {
  agents(): Promise<DiscoveredAgents>;
  spawn(request: HubRequest, client: HubClient): Promise<PendingCall>;
  /** A call that continues in another request. */
  pendingCall(id: string, tool: string): PendingCall;
  /** The state of an agent; with a limit above 0 after its end, or after so many milliseconds. */
  output(agentId: string, options: OutputOptions): Promise<AgentView>;
  stop(agentId: string, signal: AbortSignal): Promise<AgentView>;
  /** A running agent reads it between its turns; one that has ended is taken up again in the background. */
  send(agentId: string, message: string, client: HubClient): Promise<HubMessage>;
  /** Whether named agents form a team, which the clients lead. */
  leadsTeam(): Promise<boolean>;
  /** Calls a tool of the lead of the team. */
  callTeamTool(tool: string, input: unknown, signal: AbortSignal): Promise<LoopToolResult>;
  /** What members have written to the lead since the last call; waits for the first message at most so long. */
  messages(options: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<readonly string[]>;
}

export interface OutputOptions {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Notified where the agent runs, when that is here. */
  readonly onFound?: (agents: HubAgents, agentId: string) => void;
}

export interface AgentHubOptions {
  readonly runtime: HostedRuntime;
  readonly questionController: PendingCalls;
  readonly session: SessionOptions;
  /** The folder in which this project's sessions are kept. */
  readonly transcripts: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: (message: string) => void;
}

/** How long a question waits for the request that answers it. */
const claimMs = 10 * 60_000;
const maxEarlierSessions = 8;
const lookMs = 200;

export function createAgentHub(options: AgentHubOptions): AgentHub {
  const { runtime, questionController, session } = options;
  const sessions = createHubSessions({
    // The main conversation of these sessions is never used, so none is kept.
    open: (sessionId) =>
      openChildren(options, {
        ...session,
        childrenOnly: true,
        // Agents of earlier sessions are taken up alone.
        ...(sessionId === undefined ? { leadsTeam: true } : { sessionId }),
      }),
    maxEarlier: maxEarlierSessions,
  });
  const hub: HubParts = {
    ...options,
    sessions,
    find: (agentId) => findAgent(agentId, sessions.list(), runtime),
  };
  return {
    agents: runtime.agents,
    spawn: (request, client) => spawn(hub, request, client),
    pendingCall(id, tool) {
      const pendingCall = questionController.find(id);
      if (pendingCall !== undefined && pendingCall.tool === tool) return pendingCall;
      throw new RetinueError("unknown-call", "This call is over, or was never started.", {
        advice: "Call the tool again, or read what the agent has done with agent_output.",
      });
    },
    output: (agentId, wanted) => readOutput(hub, agentId, wanted),
    stop: (agentId, signal) => stopAgent(hub, agentId, signal),
    send: (agentId, message, client) => sendMessage(hub, agentId, { message, client }),
    leadsTeam: async () => formsTeams(options.environment, (await runtime.agents()).settings.settings),
    async callTeamTool(name, input, signal) {
      const [tool] = (await sessions.own()).facts.loopTools([name]);
      return tool === undefined
        ? { text: `${name} is not available in this session.`, isError: true }
        : tool.call(input, { signal });
    },
    messages: async (wanted) => readMessages(await sessions.own(), wanted),
    async [Symbol.asyncDispose]() {
      const stopped = questionController.stopAll();
      await sessions.close();
      await stopped;
    },
  };
}

interface HubParts extends AgentHubOptions {
  readonly sessions: ReturnType<typeof createHubSessions>;
  readonly find: (agentId: string) => Promise<LocatedAgent>;
}

/** A session for children alone, whose questions go to the clients that wait for them. */
async function openChildren(
  { runtime, questionController, log }: AgentHubOptions,
  session: SessionOptions,
): Promise<AgentTree> {
  const answer = answerQuestions((question, signal) => questionController.answer(question, signal));
  return openTree({
    runtime,
    session,
    asks: { permissions: "person", forms: true, oneAtATime: true },
    onEvent(event, submit) {
      if (event.type === "notice") log(event.text);
      answer(event, submit);
    },
  });
}

async function spawn(hub: HubParts, request: HubRequest, client: HubClient): Promise<PendingCall> {
  const { sessions } = hub;
  if (request.resume === undefined) return start(hub, await sessions.own(), { request, client });
  const located = await hub.find(request.resume);
  refuseRunning(located);
  if (located.where === "here") {
    const resumed = { ...request, resume: located.state.id };
    return start(hub, located.session, { request: resumed, client });
  }
  const { id: resume, sessionId } = located.task;
  const resumed = { ...request, resume };
  const still = sessions.list().find((each) => each.sessionId === sessionId);
  if (still !== undefined && still === (await sessions.own()))
    return start(hub, still, { request: resumed, client });
  const { session: opened, release } = await sessions.earlier(sessionId);
  return start(hub, opened, { request: resumed, client, release });
}

interface HubStart {
  readonly request: HubRequest;
  readonly client: HubClient;
  /** Called when the agent has ended. */
  readonly release?: () => void;
}

function start(
  { questionController }: HubParts,
  tree: AgentTree,
  { request, client: { tool, maxQuestions }, release }: HubStart,
): PendingCall {
  // Ends of agents in the background are asked for by clients, so the notices of them are not read; mail of a team is read.
  if (!tree.leadsTeam) tree.takeReports();
  const id = randomUUID();
  const pendingCall = createPendingCall({
    id,
    tool,
    agents: tree,
    maxQuestions,
    claimMs,
    async run(signal) {
      try {
        const outcome = await tree.spawn({ ...request, callId: id }, signal);
        // A client that left while it was being started did not want it in the background either.
        if (outcome.type === "launched" && signal.aborted) {
          const started = tree.list().find((state) => state.callId === id);
          if (started !== undefined)
            await tree.main.submit({ type: "stop", agent: started.id, by: "parent" });
        }
        return outcome;
      } finally {
        release?.();
      }
    },
    onOver: () => questionController.remove(id),
  });
  questionController.add(pendingCall);
  return pendingCall;
}

async function readOutput(hub: HubParts, agentId: string, options: OutputOptions): Promise<AgentView> {
  const located = await hub.find(agentId);
  if (located.where === "files") return outputOfFiles(hub, located.task.id, options);
  const { id } = located.state;
  options.onFound?.(located.session, id);
  const agent = located.session.get(id);
  if (options.waitMs > 0 && agent !== undefined) await waitAtMost(agent.done, options);
  return viewHere(located);
}

function viewHere({
  session,
  state: { id, ...state },
}: Extract<LocatedAgent, { readonly where: "here" }>): AgentView {
  return viewOfState(session.get(id)?.state() ?? { id, ...state }, session.facts.partialText(id));
}

async function outputOfFiles(
  { runtime, find }: HubParts,
  agentId: string,
  { waitMs, signal }: OutputOptions,
): Promise<AgentView> {
  const enough = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  const records: JsonRecord[] = [];
  let located = await find(agentId);
  while (waitMs > 0 && isElsewhere(located) && !enough.aborted) {
    for await (const _ of runtime.tasks.log(located.task.id, { follow: true, signal: enough }));
    await sleep(lookMs, enough).catch(() => undefined);
    located = await find(agentId);
  }
  signal.throwIfAborted();
  if (located.where === "here") return viewHere(located);
  for await (const log of runtime.tasks.log(located.task.id)) records.push(...log.records);
  return viewOfTranscript(located.task, records);
}

async function stopAgent(hub: HubParts, agentId: string, signal: AbortSignal): Promise<AgentView> {
  const located = await hub.find(agentId);
  if (located.where === "here") {
    await located.session.main.submit({ type: "stop", agent: located.state.id });
    return viewHere(located);
  }
  const { task } = located;
  const { transcripts } = hub;
  if (isGoingOn(task)) await submitElsewhere({ type: "stop", agent: task.id }, task, { transcripts, signal });
  return outputOfFiles(hub, task.id, { waitMs: 0, signal });
}

async function sendMessage(
  hub: HubParts,
  agentId: string,
  { message, client }: { readonly message: string; readonly client: HubClient },
): ReturnType<AgentHub["send"]> {
  const located = await hub.find(agentId);
  if (located.where === "here" && !hasEnded(located.state)) {
    const agent = located.state.id;
    const sent = located.session.main.submit({ type: "message", agent, text: message, resume: false });
    // One that ended meanwhile is taken up again.
    if (await sent.then(Boolean, () => false)) return { type: "queued", agentId: agent };
  }
  const { id, description, agentType } = located.where === "here" ? located.state : located.task;
  const request = { agentType, description, prompt: message, resume: id, background: true };
  return { type: "resumed", pendingCall: await spawn(hub, request, client) };
}

async function readMessages(
  { takeReports, onTeamMail }: AgentTree,
  { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const arrived = Promise.withResolvers<void>();
  // Listening begins before looking, so that nothing falls between the two.
  const read = (): readonly string[] =>
    takeReports().flatMap(({ content }) =>
      typeof content === "string"
        ? [content]
        : content.flatMap((block) => (block.type === "text" ? [block.text] : [])),
    );
  let texts: readonly string[] = [];
  const look = (): void => {
    if (texts.length === 0) texts = read();
    if (texts.length > 0) arrived.resolve();
  };
  const forget = onTeamMail(look);
  try {
    look();
    if (texts.length === 0 && waitMs > 0) await waitAtMost(arrived.promise, { waitMs, signal });
    return texts;
  } finally {
    forget();
  }
}

/** Whether another process runs it. */
function isElsewhere(located: LocatedAgent): located is Extract<LocatedAgent, { readonly where: "files" }> {
  return located.where === "files" && isGoingOn(located.task);
}

function isGoingOn({ state }: { readonly state: string }): boolean {
  return state === "running" || state === "queued";
}

function refuseRunning(located: LocatedAgent): void {
  const id = located.where === "here" ? located.state.id : located.task.id;
  if (located.where === "here" ? hasEnded(located.state) : !isGoingOn(located.task)) return;
  const where = located.where === "here" ? "" : " in another process";
  throw new RetinueError("still-running", `The agent ${id} is still running${where}.`, {
    advice:
      located.where === "here"
        ? "Send it a message with send_message, or stop it with stop_agent."
        : "Stop it with stop_agent, or wait for its end with agent_output.",
  });
}

/** Resolves with the end or with the limit; rejects when the caller left. */
async function waitAtMost(ended: Promise<unknown>, { waitMs, signal }: OutputOptions): Promise<void> {
  const enough = new AbortController();
  try {
    await abortable(Promise.race([ended, sleep(waitMs, enough.signal).catch(() => undefined)]), signal);
  } finally {
    enough.abort();
  }
}

/** An agent that a client named: in a session that is open here, or as recorded in the files. */
type LocatedAgent =
  | { readonly where: "here"; readonly session: AgentTree; readonly state: AgentState }
  | { readonly where: "files"; readonly task: FoundTask };

/** How many agents an error lists, newest first. */
const listed = 20;

/** By id, or by the name it was given; what is no id is refused before anything is read. */
async function findAgent(
  written: string,
  sessions: readonly AgentTree[],
  { tasks }: Pick<HostedRuntime, "tasks">,
): Promise<LocatedAgent> {
  const here = sessions.flatMap((session) => session.list().map((state) => ({ session, state })));
  const own =
    here.find(({ state }) => state.id === written) ?? here.findLast(({ state }) => state.name === written);
  if (own !== undefined) return { where: "here", ...own };
  const task = await findTask(written, tasks);
  if (task !== undefined) return { where: "files", task };
  const known = here.map(({ state }) => state);
  throw unknownAgent(written, known, await tasks.list({ limit: listed }));
}

async function findTask(written: string, tasks: HostedRuntime["tasks"]): Promise<FoundTask | undefined> {
  try {
    const found = await tasks.get(written);
    if (found.id === written || found.name === written) return found;
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    if (error.code === "misuse")
      throw new RetinueError("bad-agent-id", `${quote(written)} is not the id of an agent.`, {
        advice: "An id comes with the result of spawn_agent; it has up to 64 letters, digits, - and _.",
      });
    if (error.code === "unknown-task") return undefined;
    if (error.code !== "ambiguous-task") throw error;
  }
  // It is the beginning of other ids; a name may be that as well.
  return (await tasks.list()).find(({ name }) => name === written);
}

function unknownAgent(
  written: string,
  known: readonly AgentState[],
  tasks: readonly FoundTask[],
): RetinueError {
  const own = known.toReversed().map(({ id, agentType, status }) => `${id} (${agentType}, ${status})`);
  const ids = new Set(known.map(({ id }) => id));
  const found = tasks.filter(({ id }) => !ids.has(id));
  const earlier = found.map(({ id, agentType, state }) => `${id} (${agentType}, ${state})`);
  const all = [...own, ...earlier].slice(0, listed);
  const advice = all.length === 0 ? "No agent was started in this folder yet." : `Known: ${all.join(", ")}.`;
  return new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(written)}.`, { advice });
}

/** The sessions in which the agents of a server run: its own, and earlier ones whose agents are taken up again. */
interface HubSessions {
  /** Opened with the first agent; one that could not be opened is tried again. */
  own(): Promise<AgentTree>;
  /** An earlier session, for its children only; closed again when `release` was called and none of them runs. */
  earlier(sessionId: string): Promise<{ readonly session: AgentTree; readonly release: () => void }>;
  /** Those that are open now. */
  list(): readonly AgentTree[];
  close(): Promise<void>;
}

interface HubSessionsOptions {
  /** Without an id, a new session. */
  readonly open: (sessionId?: string) => Promise<AgentTree>;
  /** How many earlier sessions may be open at the same time. */
  readonly maxEarlier: number;
}

interface Earlier {
  readonly opening: Promise<AgentTree>;
  session?: AgentTree;
  users: number;
}

function createHubSessions({ open, maxEarlier }: HubSessionsOptions): HubSessions {
  const earlier = new Map<string, Earlier>();
  let owning: Promise<AgentTree> | undefined;
  let owned: AgentTree | undefined;
  let isClosed = false;

  async function openOwn(): Promise<AgentTree> {
    try {
      owned = await open();
      return owned;
    } catch (error) {
      owning = undefined;
      throw error;
    }
  }

  function refuseWhenClosed(): void {
    if (isClosed)
      throw new RetinueError("server-closed", "The server is closing, so no agent can be started.");
  }

  return {
    own() {
      refuseWhenClosed();
      owning ??= openOwn();
      return owning;
    },
    async earlier(sessionId) {
      refuseWhenClosed();
      const known = earlier.get(sessionId);
      if (known === undefined && earlier.size >= maxEarlier) throw tooManySessions(maxEarlier);
      const entry: Earlier = known ?? { opening: open(sessionId), users: 0 };
      earlier.set(sessionId, entry);
      entry.users += 1;
      try {
        const session = await entry.opening;
        entry.session = session;
        return { session, release: () => void leave(earlier, sessionId, entry).catch(() => undefined) };
      } catch (error) {
        earlier.delete(sessionId);
        throw error;
      }
    },
    list: () => [
      ...(owned === undefined ? [] : [owned]),
      ...[...earlier.values()].flatMap(({ session }) => (session === undefined ? [] : [session])),
    ],
    async close() {
      isClosed = true;
      const others = [...earlier.values()].map(({ opening }) => opening);
      const openings = owning === undefined ? others : [owning, ...others];
      await Promise.allSettled(openings.map(async (opening) => (await opening)[Symbol.asyncDispose]()));
    },
  };
}

/** The last user closes the session, but only after the last child that runs in it. */
async function leave(earlier: Map<string, Earlier>, sessionId: string, entry: Earlier): Promise<void> {
  const session = await entry.opening.catch(() => undefined);
  for (const { id } of session?.list() ?? []) await session?.get(id)?.done;
  entry.users -= 1;
  if (entry.users > 0 || session?.list().some((task) => !hasEnded(task)) === true) return;
  if (earlier.get(sessionId) === entry) earlier.delete(sessionId);
  await session?.[Symbol.asyncDispose]();
}

function tooManySessions(max: number): RetinueError {
  return new RetinueError("too-many-sessions", `Agents of ${max} earlier sessions are running already.`, {
    advice: "Wait until some of them have ended, or stop them.",
  });
}

import type { UserMessage } from "../conversation/message.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AgentInput } from "../definitions/define-agent.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { abortable } from "../foundation/abort.ts";
import { RetinueError, isRetinueError } from "../foundation/retinue-error.ts";
import type { Inspection } from "../inspection/inspection.ts";
import type { SkillCatalog } from "../skills/skill-catalog.ts";
import { type AgentHandle, startAgent } from "../tasks/agent-handle.ts";
import type { Interrupted } from "../tasks/find-interrupted.ts";
import { createWorld } from "./gather-world.ts";
import { type RunHandle, startRun, stoppedEnding } from "./run-handle.ts";
import type { RunOptions, RuntimeOptions, SessionOptions } from "./runtime-options.ts";
import type { Session } from "./session.ts";
import { describeTask, type SpawnOptions } from "./spawn-options.ts";
import { createTidying } from "./tidying.ts";
import type { LoopTool } from "./tools-for-loops.ts";

/** Everything a program needs: agents, sessions, runs. Disposing it ends what is still running. */
export interface Runtime extends AsyncDisposable {
  /** One prompt to one agent, from start to end. */
  run<Output = unknown>(prompt: UserMessage["content"], options?: RunOptions<Output>): RunHandle<Output>;
  /** Starts a named agent with a task; its rights are those of a session of this runtime. */
  spawn(agentType: string, prompt: string, options?: SpawnOptions): AgentHandle;
  /** Agent, TaskOutput and TaskStop for a loop of the program's own; children live as long as this runtime. */
  tools(): Promise<readonly LoopTool[]>;
  /** A conversation over several prompts. Dispose it when it is over. */
  open<Output = unknown>(options?: SessionOptions<Output>): Promise<Session<Output>>;
  /** Every agent there is now; files are read anew each time. */
  agents(): Promise<DiscoveredAgents>;
  /** Every skill there is now, with what is wrong with any; files are read anew each time. */
  skills(): Promise<SkillCatalog>;
  /** What died with its process before it ended: child agents and main conversations of this folder. */
  interrupted(): Promise<Interrupted>;
  /** What a session or child of this folder did, from its files alone; by id, beginning of one, title or name, or the newest. */
  inspect(id?: string): Promise<Inspection>;
  /** Adds an agent, or replaces the program's own of the same name; the next run sees it. */
  register(agent: AgentDefinition | AgentInput): void;
  /** Takes back an agent that this program has added. */
  unregister(name: string): void;
}

/** The one place where the parts are put together. What running needs is loaded with the first session. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const world = createWorld(options);
  const stop = new AbortController();
  const tidying = createTidying(stop.signal, Date.now);
  const sessions = new Set<AsyncDisposable>();
  const busy = new Set<Promise<unknown>>();
  // The agents a program starts by itself share one session, which ends with the runtime.
  let hosting: Promise<Session> | undefined;

  function track<T>(work: Promise<T>): Promise<T> {
    busy.add(work);
    const forget = (): void => void busy.delete(work);
    work.then(forget, forget);
    return work;
  }

  async function openTracked<Output>(
    sessionOptions: SessionOptions<Output>,
    signal: AbortSignal = stop.signal,
  ): Promise<Session<Output>> {
    refuseWhenDisposed(stop.signal);
    const [{ beginSession }, facts] = await Promise.all([import("./begin-session.ts"), world.gather()]);
    const session = await beginSession(facts, sessionOptions, { look: world.gather, signal });
    if (facts.keepsTranscripts) tidying.begin(facts);
    const tracked: Session<Output> = {
      ...session,
      async [Symbol.asyncDispose]() {
        if (sessions.delete(tracked)) await session[Symbol.asyncDispose]();
      },
    };
    sessions.add(tracked);
    if (!stop.signal.aborted) return tracked;
    await tracked[Symbol.asyncDispose]();
    throw stop.signal.reason;
  }

  /** Undefined when the signal came first; a session that opens after that is closed again. */
  async function openUnlessStopped<Output>(
    sessionOptions: SessionOptions<Output>,
    signal: AbortSignal,
  ): Promise<Session<Output> | undefined> {
    const opening = track(openTracked(sessionOptions, signal));
    try {
      return await abortable(opening, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      track(opening.then((session) => session[Symbol.asyncDispose]())).catch(() => undefined);
      return undefined;
    }
  }

  function host(): Promise<Session> {
    refuseWhenDisposed(stop.signal);
    // It has no conversation of its own, so nobody would read what children tell a parent.
    hosting ??= openTracked({ childrenOnly: true });
    return hosting;
  }

  return {
    agents: async () => (await world.gather()).discovered,
    skills: async () => (await world.gather()).skills(),
    async interrupted() {
      const [{ findInterrupted }, facts] = await Promise.all([
        import("../tasks/find-interrupted.ts"),
        world.gather(),
      ]);
      return findInterrupted(facts.discovered.paths.transcripts);
    },
    async inspect(id) {
      const [{ loadInspection }, facts] = await Promise.all([
        import("../inspection/load-named-inspection.ts"),
        world.gather(),
      ]);
      const { transcripts } = facts.discovered.paths;
      return loadInspection({ transcripts, written: id, now: () => facts.today().getTime() });
    },
    register: world.register,
    unregister: world.unregister,
    open: (sessionOptions = {}) => track(openTracked(sessionOptions)),
    spawn(agentType, prompt, spawnOptions = {}) {
      const session = host();
      const request = {
        description: describeTask(agentType, prompt),
        ...spawnOptions,
        agentType,
        prompt,
        origin: "program",
      } as const;
      return startAgent(
        request,
        session.then(({ agentHost }) => agentHost),
      );
    },
    tools: async () => (await host()).tools(),
    run<Output>(prompt: UserMessage["content"], { signal, ...sessionOptions }: RunOptions<Output> = {}) {
      refuseWhenDisposed(stop.signal);
      let sessionId = sessionOptions.sessionId ?? "";
      const handle = startRun<Output>({
        sessionId: () => sessionId,
        signal: signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]),
        async *events(runSignal) {
          await using session = await openUnlessStopped<Output>(sessionOptions, runSignal);
          if (session === undefined) {
            yield { type: "run-ended", ending: stoppedEnding(codeOf(runSignal)) };
            return;
          }
          sessionId = session.plan.sessionId;
          yield* session.stream(prompt, runSignal);
        },
      });
      track(handle.result).catch(() => undefined);
      return handle;
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new RetinueError("runtime-disposed", "The runtime was disposed of."));
      while (busy.size > 0) await Promise.allSettled(busy);
      await Promise.allSettled([...sessions].map((session) => session[Symbol.asyncDispose]()));
      await tidying.end();
      await world[Symbol.asyncDispose]();
    },
  };
}

function refuseWhenDisposed(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new RetinueError("runtime-disposed", "The runtime was disposed of, so nothing can be started in it.", {
    advice: "Create another one, or keep this one until everything is done.",
  });
}

function codeOf({ reason }: AbortSignal): string {
  return isRetinueError(reason) ? reason.code : "aborted";
}

// @io
import { randomUUID } from "node:crypto";
import type { UserMessage } from "../conversation/message.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AgentInput } from "../definitions/define-agent.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { abortable } from "../foundation/abortable.ts";
import { isRetinueError, RetinueError } from "../foundation/retinue-error.ts";
import type { Inspection } from "../inspection/inspection.ts";
import type { SkillCatalog } from "../skills/skill-catalog.ts";
import type { Interrupted } from "../tasks/recovery/find-interrupted.ts";
import { type AgentHandle, startAgent } from "./agent-handle.ts";
import { type RunHandle, startRun, stoppedEnding } from "./run-handle.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { RunOptions, RuntimeOptions, SessionOptions } from "./runtime-options.ts";
import type { Session } from "./session.ts";
import { type SpawnOptions, sessionOptionsOf, spawnRequestOf } from "./spawn-options.ts";
import type { LoopTool } from "./tools-for-loops.ts";
import { createWorld } from "./world.ts";

/** Everything a program needs: agents, sessions, runs. Disposing it ends what is still running. */
export interface Runtime extends AsyncDisposable {
  /** One prompt to one agent, from start to end. */
  run<Output = unknown>(prompt: UserMessage["content"], options?: RunOptions<Output>): RunHandle<Output>;
  /** Starts a named agent with a task; its rights are those of a session of this runtime. */
  spawn<Output = unknown>(
    agentType: string,
    prompt: string,
    options?: SpawnOptions<Output>,
  ): AgentHandle<Output>;
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
  /** Ends what is still running and gives back what is held; `await using` does the same. */
  close(): Promise<void>;
}

/** The one place where the parts are put together. What running needs is loaded with the first session. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const world = createWorld(options);
  const stop = new AbortController();
  const tidying = createTidying(stop.signal, Date.now);
  const sessions = new Set<Pick<Session, "close">>();
  const busy = new Set<Promise<unknown>>();
  // The agents a program starts by itself share one session, which ends with the runtime.
  let hosting: Promise<Session> | undefined;
  const hostId = randomUUID();

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
    const close = async (): Promise<void> => {
      if (sessions.delete(tracked)) await session.close();
    };
    const tracked: Session<Output> = { ...session, close, [Symbol.asyncDispose]: close };
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
    hosting ??= openTracked({ childrenOnly: true, sessionId: hostId });
    return hosting;
  }

  async function close(): Promise<void> {
    stop.abort(new RetinueError("runtime-disposed", "The runtime was closed."));
    while (busy.size > 0) await Promise.allSettled(busy);
    await Promise.allSettled([...sessions].map((session) => session.close()));
    await tidying.end();
    await world[Symbol.asyncDispose]();
  }

  return {
    agents: async () => (await world.gather()).discovered,
    skills: async () => (await world.gather()).skills(),
    async interrupted() {
      const [{ findInterrupted }, facts] = await Promise.all([
        import("../tasks/recovery/find-interrupted.ts"),
        world.gather(),
      ]);
      return findInterrupted(facts.discovered.paths.transcripts);
    },
    async inspect(id) {
      const [{ loadInspection }, facts] = await Promise.all([
        import("../inspection/find-named-inspected.ts"),
        world.gather(),
      ]);
      const { transcripts } = facts.discovered.paths;
      return loadInspection({ transcripts, written: id, now: () => facts.today().getTime() });
    },
    register: world.register,
    unregister: world.unregister,
    open: (sessionOptions = {}) => track(openTracked(sessionOptions)),
    spawn<Output>(agentType: string, prompt: string, given: SpawnOptions<Output> = {}) {
      refuseWhenDisposed(stop.signal);
      const own = sessionOptionsOf(given);
      const sessionId = own === undefined ? hostId : randomUUID();
      const session = own === undefined ? host() : openTracked({ ...own, childrenOnly: true, sessionId });
      const handle = startAgent<Output>(spawnRequestOf(agentType, prompt, given), {
        host: session.then(({ agentHost }) => agentHost),
        sessionId: () => sessionId,
        signal: given.signal,
        output: given.output,
      });
      if (own !== undefined) track(closeAfter(session, handle.result)).catch(() => undefined);
      return handle;
    },
    tools: async () => (await host()).tools(),
    run<Output>(prompt: UserMessage["content"], { signal, ...sessionOptions }: RunOptions<Output> = {}) {
      refuseWhenDisposed(stop.signal);
      const isNew = sessionOptions.resume === undefined && sessionOptions.continue !== true;
      let sessionId = sessionOptions.sessionId ?? (isNew ? randomUUID() : "");
      const opened = isNew ? { ...sessionOptions, sessionId } : sessionOptions;
      const handle = startRun<Output>({
        sessionId: () => sessionId,
        signal: signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]),
        async *events(runSignal) {
          await using session = await openUnlessStopped<Output>(opened, runSignal);
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
    close,
    [Symbol.asyncDispose]: close,
  };
}

function refuseWhenDisposed(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new RetinueError("runtime-disposed", "The runtime is closed, so nothing can be started in it.", {
    advice: "Create another one, or close this one later.",
  });
}

/** Ends the session of a child that had one of its own. */
async function closeAfter(session: Promise<Session>, result: Promise<unknown>): Promise<void> {
  await result.catch(() => undefined);
  await (await session).close();
}

function codeOf({ reason }: AbortSignal): string {
  return isRetinueError(reason) ? reason.code : "aborted";
}

/** Removes what old sessions left, beside the work: it is begun once, and nobody waits for it but the end. */
interface Tidying {
  begin(world: Pick<RuntimeContext, "discovered" | "environment">): void;
  end(): Promise<void>;
}

/** How long transcripts are kept where settings do not say. */
const defaultDays = 30;

export function createTidying(signal: AbortSignal, now: () => number): Tidying {
  let work: Promise<void> | undefined;
  async function tidy({
    discovered: { paths, settings },
    environment,
  }: Parameters<Tidying["begin"]>[0]): Promise<void> {
    const { cleanUp } = await import("../tasks/recovery/cleanup.ts");
    const olderThanDays = settings.settings.plain.cleanupPeriodDays ?? defaultDays;
    await cleanUp({ ...paths, olderThanDays, now: now(), dryRun: false, environment, signal });
  }
  return {
    begin(world) {
      // What cannot be removed today is tried again at the next start.
      work ??= tidy(world).catch(() => undefined);
    },
    end: async () => work,
  };
}

import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { resolve } from "node:path";
import type { UserMessage } from "../conversation/message.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { type AgentInput, defineAgent } from "../definitions/define-agent.ts";
import {
  type AgentCatalog,
  createAgentCatalog,
  type DiscoveredAgents,
} from "../definitions/discover-agents.ts";
import { sleep } from "../foundation/abort.ts";
import { Fault } from "../foundation/fault.ts";
import { createCoolDowns } from "../model/cool-down.ts";
import { createModelFactory } from "../model/model-factory.ts";
import { createPaths } from "../settings/paths.ts";
import { createTrustStore } from "../settings/trust.ts";
import { openSession, type SessionWorld } from "./open-session.ts";
import { type RunHandle, startRun } from "./run-handle.ts";
import { runKeyHelper } from "./run-key-helper.ts";
import type { RunOptions, RuntimeOptions, SessionOptions } from "./runtime-options.ts";
import type { Session } from "./session.ts";

/** Everything a program needs: agents, sessions, runs. Disposing it ends what is still running. */
export interface Runtime extends AsyncDisposable {
  /** One prompt to one agent, from start to end. */
  run<Output = unknown>(prompt: UserMessage["content"], options?: RunOptions<Output>): RunHandle<Output>;
  /** A conversation over several prompts. Dispose it when it is over. */
  open(options?: SessionOptions): Promise<Session>;
  /** Every agent there is now; files are read anew each time. */
  agents(): Promise<DiscoveredAgents>;
  /** Adds an agent; the next run sees it. */
  register(agent: AgentDefinition | AgentInput): void;
}

/** The one place where the parts are put together. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const environment = options.environment ?? process.env;
  const home = options.home ?? homedir();
  const cwd = resolve(options.cwd ?? process.cwd());
  const platform = options.platform ?? process.platform;
  const now = (): number => performance.now();
  const clock = { now, sleep };
  const coolDowns = createCoolDowns(clock, Math.random);
  const registered = (options.agents ?? []).map(toDefinition);
  const stop = new AbortController();
  const open = new Set<AsyncDisposable>();
  const running = new Set<Promise<unknown>>();
  let catalog: Promise<{ catalog: AgentCatalog; trusted: boolean }> | undefined;

  async function prepare() {
    const trusted = options.trusted ?? (await isTrusted({ cwd, home, environment, platform }));
    return {
      trusted,
      catalog: createAgentCatalog({
        ...options,
        cwd,
        home,
        environment,
        platform,
        trusted,
        agents: registered,
      }),
    };
  }

  async function gatherWorld(): Promise<SessionWorld> {
    catalog ??= prepare();
    const { catalog: agents, trusted } = await catalog;
    const discovered = await agents.read();
    const { settings } = discovered.settings;
    const variables = { ...environment, ...Object.fromEntries(settings.env) };
    const helper = settings.plain.apiKeyHelper;
    return {
      discovered,
      trusted,
      environment: variables,
      platform,
      models: createModelFactory({
        environment: variables,
        settings: settings.plain,
        ...(helper === undefined
          ? {}
          : { apiKeyHelper: () => runKeyHelper(helper, { environment: variables, directory: cwd }) }),
        coolDowns,
        clock,
        random: Math.random,
      }),
      ...(options.model === undefined ? {} : { model: options.model }),
      extraTools: options.extraTools ?? [],
      additionalDirectories: (options.additionalDirectories ?? []).map((folder) => resolve(cwd, folder)),
      host: options.host ?? {},
      ...(options.canUseTool === undefined ? {} : { canUseTool: options.canUseTool }),
      keepsTranscripts: options.transcripts ?? true,
      entrypoint: options.entrypoint ?? "sdk-ts",
      ids: { uuid: randomUUID },
      now,
      today: () => new Date(),
    };
  }

  async function openTracked(sessionOptions: SessionOptions): Promise<Session> {
    stop.signal.throwIfAborted();
    const session = await openSession(await gatherWorld(), sessionOptions);
    const tracked: Session = {
      ...session,
      async [Symbol.asyncDispose]() {
        if (open.delete(tracked)) await session[Symbol.asyncDispose]();
      },
    };
    open.add(tracked);
    return tracked;
  }

  return {
    agents: async () => (await gatherWorld()).discovered,
    register(agent) {
      const definition = toDefinition(agent);
      registered.push(definition);
      void catalog?.then(({ catalog: agents }) => agents.register(definition));
    },
    open: (sessionOptions = {}) => openTracked(sessionOptions),
    run<Output>(prompt: UserMessage["content"], { signal, ...sessionOptions }: RunOptions<Output> = {}) {
      let sessionId = sessionOptions.sessionId ?? "";
      const handle = startRun<Output>({
        sessionId: () => sessionId,
        signal: signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]),
        async *events(runSignal) {
          await using session = await openTracked(sessionOptions);
          sessionId = session.plan.sessionId;
          yield* session.stream(prompt, runSignal);
        },
      });
      running.add(handle.result);
      const forget = (): void => void running.delete(handle.result);
      handle.result.then(forget, forget);
      return handle;
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Fault("runtime-disposed", "The runtime was disposed of."));
      await Promise.allSettled(running);
      await Promise.allSettled([...open].map((session) => session[Symbol.asyncDispose]()));
    },
  };
}

function toDefinition(agent: AgentDefinition | AgentInput): AgentDefinition {
  return "written" in agent ? agent : defineAgent(agent);
}

async function isTrusted(place: {
  readonly cwd: string;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
}): Promise<boolean> {
  const { stateFile } = createPaths(place);
  return (await createTrustStore({ stateFile, home: place.home }).isTrusted(place.cwd)).trusted;
}

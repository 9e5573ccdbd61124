import { randomUUID } from "node:crypto";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { defined } from "@retinue/base/foundation/defined.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { LanguageModel } from "../models/language-model.ts";
import type { Model } from "../models/model.ts";
import type { Tool } from "../tools/tool.ts";
import { checkOptions } from "./options/check-options.ts";
import {
  type GivenTool,
  isOwnModel,
  type NormalizedRuntime,
  type NormalizedSession,
  normalizeSessionOptions,
} from "./options/normalize-runtime-options.ts";
import type { SessionOptions } from "./options/runtime-options.ts";
import type { FolderContext, RuntimeContext, SharedResources } from "./runtime-context.ts";
import type { RuntimeSource, SessionPlace } from "./runtime-source.ts";
import type { Session } from "./session.ts";
import { withScratch } from "./session-record.ts";
import type { SessionTelemetry } from "./telemetry/telemetry-source.ts";

/** The sessions of one runtime: opened on demand, and all closed with it. */
export interface SessionPool {
  readonly signal: AbortSignal;
  /** Whether the runtime was given a model that answers for all sessions. */
  readonly hasModel: boolean;
  /** What runs do at their end with agents in the background, where they do not say so themselves. */
  readonly background: SessionOptions["background"];
  /** The id of the session that children of the runtime share. */
  readonly hostId: string;
  /** `change` is for callers that need other facts than the program has, such as a replay. */
  open<Output>(
    options: SessionOptions<Output>,
    change?: (facts: RuntimeContext) => RuntimeContext,
  ): Promise<Session<Output>>;
  /** Undefined when the signal came first; a session that opens after that is closed again. */
  openUnlessStopped<Output>(
    options: SessionOptions<Output>,
    signal: AbortSignal,
  ): Promise<Session<Output> | undefined>;
  /** The session of the children that the program starts by itself; it ends with the runtime. */
  host(): Promise<Session>;
  /** Whether that session, as far as there is one, knows the agent. */
  hosts(agentId: string): Promise<boolean>;
  /** Waits for it before the runtime is closed. */
  track<T>(work: Promise<T>): Promise<T>;
  refuseWhenClosed(): void;
  close(): Promise<void>;
}

interface SessionPoolOptions {
  readonly program: ProgramContext;
  readonly defaults: NormalizedRuntime["session"];
  readonly hasModel: boolean;
  /** Called with the facts of each session that was opened. */
  readonly onOpen: (facts: RuntimeContext) => void;
  readonly stop: AbortController;
  /** Measures a session from its facts; undefined where nothing is measured. */
  readonly measure: (facts: RuntimeContext) => Promise<SessionTelemetry | undefined>;
}

export function createSessionPool(pool: SessionPoolOptions): SessionPool {
  const { hasModel, stop } = pool;
  const sessions = new Set<Pick<Session, "close">>();
  const busy = new Set<Promise<unknown>>();
  const hostId = randomUUID();
  let hosting: Promise<Session> | undefined;

  function track<T>(work: Promise<T>): Promise<T> {
    busy.add(work);
    const forget = (): void => void busy.delete(work);
    work.then(forget, forget);
    return work;
  }

  const refuseWhenClosed = (): void => refuseClosed(stop.signal);
  const open = <Output>(options: SessionOptions<Output>, more: Opening = {}) =>
    openTracked(pool, sessions, { options, ...more });

  return {
    signal: stop.signal,
    background: pool.defaults.background,
    hasModel,
    hostId,
    track,
    refuseWhenClosed,
    open: (options, change) => track(open(options, { change })),
    async openUnlessStopped(options, signal) {
      const opening = track(open(options, { signal }));
      try {
        return await abortable(opening, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
        track(opening.then((session) => session.close())).catch(() => undefined);
        return undefined;
      }
    },
    host() {
      refuseWhenClosed();
      // It has no conversation of its own, so what children report to a parent would not be read.
      if (hosting === undefined) {
        hosting = open({ childrenOnly: true, sessionId: hostId });
        // Each caller gets the failure; one that was stopped meanwhile does not wait for it.
        hosting.catch(() => undefined);
      }
      return hosting;
    },
    hosts: async (agentId) => (await hosting)?.tasks.get(agentId) !== undefined,
    async close() {
      stop.abort(new RetinueError("runtime-disposed", "The runtime was closed."));
      while (busy.size > 0) await Promise.allSettled(busy);
      await Promise.allSettled([...sessions].map((session) => session.close()));
    },
  };
}

function refuseClosed(stopped: AbortSignal): void {
  if (!stopped.aborted) return;
  throw new RetinueError("runtime-disposed", "The runtime is closed, so nothing can be started in it.", {
    advice: "Create another runtime, or close this one later.",
  });
}

interface Opening {
  readonly signal?: AbortSignal;
  readonly change?: ((facts: RuntimeContext) => RuntimeContext) | undefined;
}

/** Opens a session that leaves the set when it is closed. */
async function openTracked<Output>(
  { program, defaults, onOpen, stop, measure }: SessionPoolOptions,
  sessions: Set<Pick<Session, "close">>,
  {
    options,
    signal = stop.signal,
    change = (facts) => facts,
  }: Opening & { readonly options: SessionOptions<Output> },
): Promise<Session<Output>> {
  refuseClosed(stop.signal);
  checkOptions("open", options);
  const { setup: given, place, ...own } = normalizeSessionOptions(options, defaults);
  const there = Object.values(place).every((value) => value === undefined) ? program : program.at(place);
  const [{ openSession }, shared] = await Promise.all([import("./open-session.ts"), there.gather()]);
  const { facts, remove } = withScratch(change(await program.forSession(shared, own)));
  // Known from the start, so that questions while it is opened can name it.
  const isNew = given.resume === undefined && given.continue !== true;
  const setup = isNew ? { ...given, sessionId: given.sessionId ?? randomUUID() } : given;
  const measured = setup.planOnly === true ? undefined : await measure(facts);
  const session = await openSession(measured?.facts ?? facts, setup, {
    loadRegistry: there.loadRegistry,
    signal,
  }).catch(async (error: unknown) => {
    measured?.end();
    await remove();
    throw error;
  });
  onOpen(facts);
  const close = async (): Promise<void> => {
    if (!sessions.delete(tracked)) return;
    await session.close();
    await remove();
    measured?.end();
  };
  const tracked: Session<Output> = { ...session, close, [Symbol.asyncDispose]: close };
  sessions.add(tracked);
  if (!stop.signal.aborted) return tracked;
  await tracked.close();
  throw stop.signal.reason;
}

/** What the program brought, in our shapes; what reads schemas and models of other libraries is loaded only for them. */
export interface ProgramContext {
  gather(): Promise<RuntimeContext>;
  /** The agents there are now, as they are looked for at each spawn. */
  loadRegistry(): Promise<Pick<FolderContext, "discovered">>;
  /** The same in another folder, or with other variables. */
  at(place: SessionPlace): Pick<ProgramContext, "gather" | "loadRegistry">;
  /** The same with what one session alone has of the program: tools, a model, functions that decide and hooks. */
  forSession(
    facts: RuntimeContext,
    own: Pick<NormalizedSession<unknown>, "tools" | "model" | "functions">,
  ): Promise<RuntimeContext>;
}

export function createProgramContext(source: RuntimeSource, normalized: NormalizedRuntime): ProgramContext {
  const { tools, model, childLimits, setup } = normalized;
  let adapted: Promise<{ readonly extraTools: readonly Tool[]; readonly own: Model | undefined }> | undefined;

  const prepared = new WeakMap<Model, Model>();

  /** Asked again where a failure may pass, like a model that was named; once for each model, so that all sessions have the same. */
  function prepare(own: Model, { models }: SharedResources): Model {
    let model = prepared.get(own);
    if (model === undefined) {
      const retrying = models.retrying(own);
      model = setup.wrapModel?.(retrying) ?? retrying;
      prepared.set(own, model);
    }
    return model;
  }

  async function adapt() {
    const own = model === undefined ? undefined : await adaptModel(model);
    return { extraTools: await adaptTools(tools.objects), own };
  }

  async function gatherFrom(from: RuntimeSource): Promise<RuntimeContext> {
    adapted ??= adapt();
    const [facts, { extraTools, own }] = await Promise.all([from.gather(), adapted]);
    if (setup.ownSettings === true) refuseWrongSettings(facts.discovered.settings);
    return {
      ...facts,
      extraTools,
      ...(own === undefined ? {} : { model: prepare(own, facts) }),
      childLimits,
    };
  }

  return {
    loadRegistry: source.loadRegistry,
    gather: () => gatherFrom(source),
    at(place) {
      const there = source.at(place);
      return { loadRegistry: there.loadRegistry, gather: () => gatherFrom(there) };
    },
    async forSession(common, own) {
      const { hooks, ...functions } = own.functions;
      const facts = {
        ...common,
        ...defined(functions),
        ...(hooks === undefined ? {} : { hooks: [...common.hooks, ...hooks] }),
      };
      if (own.tools.length === 0 && own.model === undefined) return facts;
      const { model: shared, ...rest } = facts;
      const model = typeof own.model === "object" ? prepare(await adaptModel(own.model), common) : shared;
      const answers = model !== undefined && typeof own.model !== "string";
      const extraTools = [...facts.extraTools, ...(await adaptTools(own.tools))];
      return { ...rest, extraTools, ...(answers ? { model } : {}) };
    },
  };
}

/** A wrong entry of a file is reported where files are checked; one of the program itself would be lost. */
function refuseWrongSettings({ layers, diagnostics }: FolderContext["discovered"]["settings"]): void {
  const own = layers.find(({ source }) => source.scope === "flags")?.source.file;
  const wrong = diagnostics.find(({ file, severity }) => file === own && severity !== "note");
  if (wrong === undefined) return;
  throw new RetinueError(
    "invalid-settings",
    `The option settings of createRuntime() cannot be used: ${wrong.message}`,
    wrong.advice === undefined ? {} : { advice: wrong.advice },
  );
}

async function adaptTools(tools: readonly GivenTool[]): Promise<readonly Tool[]> {
  if (tools.length === 0) return [];
  const { adaptTool } = await import("./options/adapt-tool.ts");
  return tools.map(adaptTool);
}

async function adaptModel(model: Model | LanguageModel): Promise<Model> {
  if (isOwnModel(model)) return model;
  const { createModelFromLanguageModel } = await import("../models/language-model.ts");
  return createModelFromLanguageModel(model);
}

import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { defined } from "@retinue/base/foundation/defined.ts";
import { endSentence } from "@retinue/base/foundation/first-sentence.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import type { AnthropicAccess } from "./anthropic/create-anthropic-model.ts";
import { createHttpFetch, type Proxies, readProxies } from "./create-http-fetch.ts";
import type { LoadPackage } from "./create-package-loader.ts";
import { findOverride, lookUpModel, readModelOverrides } from "./look-up-model.ts";
import type { Model, ModelEvent } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { factorySettings, findProvider } from "./provider-entry.ts";
import type { QuotaTurn, QuotaWindow, QuotaWindows } from "./quota-window.ts";
import type { QuotaReport } from "./read-quota-report.ts";
import type { CoolDown, CoolDowns, GatePass, RequestGate, RequestGates } from "./request-gate.ts";
import type { StallLimits } from "./stall-watch.ts";

export interface ModelFactoryOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly settings?: { readonly modelOverrides?: unknown; readonly modelPricing?: unknown };
  /** Runs the helper command that settings name, where they name one. */
  readonly apiKeyHelper?: () => Promise<string>;
  /** How packages of providers are found; only beside this program when absent. */
  readonly load?: LoadPackage;
  /** The `fetch` to use with these proxies; absent means one of each model's own. */
  readonly fetch?: (proxies: Proxies | undefined) => typeof globalThis.fetch;
  readonly coolDowns: CoolDowns;
  readonly gates?: RequestGates;
  /** Present where a used-up quota is waited for. */
  readonly quotas?: QuotaWindows | undefined;
  readonly clock: WaitClock;
  readonly random: () => number;
  /** How long a provider may be silent; absent parts are as usual. */
  readonly timeouts?: Partial<StallLimits>;
  /** Wraps each model before its first request. */
  readonly wrap?: (model: Model) => Model;
}

export interface ModelFactory {
  /** The model, ready to be asked; the same object for the same reference. */
  model(reference: ChosenModel): Promise<Model>;
  /** A model that the program made, retrying like the others. */
  retrying(model: Model): Model;
  /** Which program would serve a model, and why that one. */
  describe(reference: ChosenModel): AdapterChoice;
}

const defaultTimeouts: StallLimits = { firstTokenMs: 300_000, betweenTokensMs: 120_000 };

/** Makes models of every provider, which retry, and shares connections and cool-downs between them. */
export function createModelFactory(options: ModelFactoryOptions): ModelFactory {
  const { environment } = options;
  const models = new Map<string, Promise<Model>>();
  const describe = (reference: ChosenModel): AdapterChoice =>
    chooseAdapter(reference, environment, options.apiKeyHelper !== undefined);

  async function create(reference: ChosenModel): Promise<Model> {
    const choice = describe(reference);
    switch (choice.adapter) {
      case "offline":
        return (await import("./offline/create-offline-model.ts")).createOfflineModel();
      case "anthropic":
        return retrying(await createAnthropic(reference, options), options);
      case "ai-sdk": {
        const { createAiSdkModel } = await import("./ai-sdk/create-ai-sdk-model.ts");
        const { provider = "", id: modelId } = reference;
        const load = options.load === undefined ? {} : { load: options.load };
        const facts = findOverride(readModelOverrides(options.settings ?? {}), reference);
        return retrying(
          await createAiSdkModel({
            provider,
            modelId,
            environment,
            facts,
            ...load,
            ...(options.timeouts === undefined ? {} : { timeouts: options.timeouts }),
          }),
          options,
        );
      }
      case "none":
        throw new ModelError("unauthorized", choice.why, { advice: choice.advice });
    }
  }

  return {
    describe,
    // How many requests it takes at a time is for the program to know.
    retrying: (model) => retrying(model, { ...options, gates: undefined }),
    model(reference) {
      const key = JSON.stringify([reference.provider ?? "", reference.id]);
      let model = models.get(key);
      if (model === undefined) {
        model = create(reference).then((made) => options.wrap?.(made) ?? made);
        models.set(key, model);
        // A failure is not kept: the next one to ask may find the key set or the package installed.
        model.catch(() => models.delete(key));
      }
      return model;
    },
  };
}

async function createAnthropic({ id }: ChosenModel, options: ModelFactoryOptions): Promise<Model> {
  const { createAnthropicModel } = await import("./anthropic/create-anthropic-model.ts");
  const overrides = readModelOverrides(options.settings ?? {});
  const wireId = overrides.names.get(id);
  const proxies = readProxies(options.environment);
  const fetch = options.fetch?.(proxies) ?? createHttpFetch(proxies).fetch;
  const { environment, apiKeyHelper } = options;
  const apiKey = textOf(environment["ANTHROPIC_API_KEY"]);
  const authToken = textOf(environment["ANTHROPIC_AUTH_TOKEN"]);
  const baseUrl = textOf(environment["ANTHROPIC_BASE_URL"]);
  const access: AnthropicAccess = {
    apiKeyHelper,
    apiKey,
    authToken,
    baseUrl,
    headers: readHeaders(environment["ANTHROPIC_CUSTOM_HEADERS"]),
  };
  const known = lookUpModel(id, overrides.facts);
  const { toolSearch, experimentalBetasDisabled } = readEnvironment(environment).options;
  return createAnthropicModel({
    id,
    known,
    wireId,
    // Many gateways drop unknown fields and charge for them; a user who turns the search for tools on vouches that theirs does not.
    defersTools:
      known.defersTools &&
      experimentalBetasDisabled !== true &&
      (isAnthropics(baseUrl) || toolSearch === "always"),
    ...access,
    fetch,
    timeouts: { ...defaultTimeouts, ...defined(options.timeouts ?? {}) },
  });
}

function isAnthropics(baseUrl: string | undefined): boolean {
  return (
    baseUrl === undefined || (URL.canParse(baseUrl) && new URL(baseUrl).hostname === "api.anthropic.com")
  );
}

/** What distinguishes one account of a provider from another, as the environment names it. */
export function accountOf(
  provider: string,
  environment: ModelFactoryOptions["environment"],
  apiKeyHelper: string | undefined,
): unknown {
  if (provider !== "anthropic") {
    const entry = findProvider(provider, environment);
    return entry === undefined ? null : factorySettings(entry, environment).settings;
  }
  const credential = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"].map((name) => textOf(environment[name]));
  return [
    environment["ANTHROPIC_BASE_URL"] ?? "",
    credential.find((each) => each !== undefined) ?? apiKeyHelper ?? "",
  ];
}

/** One header per line, as `Name: value`; of the same name the values are joined. */
function readHeaders(text = ""): Readonly<Record<string, string>> {
  const headers = new Map<string, readonly [name: string, value: string]>();
  for (const line of text.split(/\r?\n/)) {
    const [, name, value] = /^\s*([^:]+?)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    // A name that no header can have is refused with the request, and not dropped.
    if (name === undefined || value === undefined) continue;
    const key = name.toLowerCase();
    const [first, before] = headers.get(key) ?? [name];
    headers.set(key, [first, before === undefined ? value : `${before},${value}`]);
  }
  return Object.fromEntries(headers.values());
}

function retrying(
  model: Model,
  options: Omit<ModelFactoryOptions, "gates"> & { readonly gates?: RequestGates | undefined },
): Model {
  const { coolDowns, gates, quotas, clock, random, environment } = options;
  return withRetry(model, {
    coolDown: coolDowns.of(model.facts.provider, model.facts.id),
    gate: gates?.of(model.facts.provider),
    quota: quotas?.of(model.facts.provider),
    clock,
    random,
    maxAttempts: readMaxAttempts(environment["CLAUDE_CODE_MAX_RETRIES"]),
  });
}

function textOf(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === "" ? undefined : value.trim();
}

/** Which program asks a model, and why that one, as sentences for people. */
type AdapterChoice =
  | { readonly adapter: "anthropic" | "ai-sdk" | "offline"; readonly why: string }
  | { readonly adapter: "none"; readonly why: string; readonly advice: string };

const setKey = "Set ANTHROPIC_API_KEY, or name another provider's model as provider/model.";

/** Chooses by the provider a model is named with, and else by what is configured; with nothing configured, offline. */
export function chooseAdapter(
  { id, provider }: ChosenModel,
  environment: Readonly<Record<string, string | undefined>>,
  hasHelper = false,
): AdapterChoice {
  if (provider === "offline") {
    return { adapter: "offline", why: "The offline model was asked for by name." };
  }
  if (provider !== undefined && provider !== "anthropic") {
    return { adapter: "ai-sdk", why: `${provider}/${id} names the provider ${provider}.` };
  }
  const isSet = (name: string): boolean => (environment[name] ?? "").trim() !== "";
  const configured =
    ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"].find(isSet) ??
    (hasHelper ? "the setting apiKeyHelper" : undefined) ??
    ["ANTHROPIC_BASE_URL"].find(isSet);
  if (configured !== undefined) {
    return {
      adapter: "anthropic",
      why: `${id} is requested from Anthropic's API, because ${configured} is set.`,
    };
  }
  if (provider === "anthropic") {
    return { adapter: "none", why: `anthropic/${id} needs a key, and none is set.`, advice: setKey };
  }
  return {
    adapter: "offline",
    why: `No provider is configured, so the offline model answers in place of ${id}. ${setKey}`,
  };
}

interface RetryOptions {
  readonly coolDown: CoolDown;
  /** Holds back requests a provider would refuse; absent means none is held back. */
  readonly gate?: RequestGate | undefined;
  /** Absent: a quota that is used up is an error like any other. */
  readonly quota?: QuotaWindow | undefined;
  readonly clock: WaitClock;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** The first one included. */
  readonly maxAttempts: number;
  /** The most that all pauses of one request may take together. */
  readonly maxWaitMs?: number;
  /** How often a request that waits for its turn says so. */
  readonly signOfLifeMs?: number;
}

/**
 * The same model with retries: an error that may pass is answered by asking again. That is safe in the middle of an
 * answer too, because nothing acts on an answer before its `message-ended`, and after that event nothing is repeated.
 */
export function withRetry(model: Model, options: RetryOptions): Model {
  const { coolDown, clock, maxAttempts, maxWaitMs = tenMinutes } = options;
  let wasReached = false;
  return {
    facts: model.facts,
    async *stream(request, { signal }) {
      let waited = 0;
      for (let attempt = 1; ; attempt += 1) {
        const pass =
          enterAtOnce(options, signal) ??
          (yield* reportingWaits(enter(model, options, signal), options.signOfLifeMs));
        let isAnswered = false;
        let hasStarted = false;
        try {
          for await (const event of model.stream(request, { signal })) {
            wasReached = true;
            if (!hasStarted) await options.quota?.answered(reportIn(event));
            hasStarted = true;
            pass.turn?.leave();
            if (event.type === "quota-reported") continue;
            isAnswered ||= event.type === "message-ended";
            // What the taker does with the answer takes no place.
            if (isAnswered) pass.leave("answered");
            yield event;
          }
          return;
        } catch (error) {
          // Known to all before the turn is free: the next request must not ask once more.
          const closedUntil = await noteRefusal(error, options);
          pass.leave(error instanceof ModelError && refusals.has(error.code) ? "refused" : "failed");
          signal.throwIfAborted();
          if (isAnswered) return;
          if (!(error instanceof ModelError) || !error.mayPass) throw error;
          if (closedUntil !== undefined) throw quotaExhausted(model, closedUntil, error);
          const delayMs = delayBefore(attempt, error, options.random);
          waited += delayMs;
          if (waited > maxWaitMs) throw waitTooLong(error, maxWaitMs);
          if (refusals.has(error.code))
            coolDown.refused(pauseAskedBy(error) ?? Math.min(delayMs, shortPause));
          wasReached ||= error.maxAttemptsUnreached === undefined;
          const worthIt = error.maxAttempts ?? (wasReached ? undefined : error.maxAttemptsUnreached);
          const limit = Math.min(maxAttempts, worthIt ?? maxAttempts);
          if (attempt >= limit) throw error;
          yield failure(error, { attempt, maxAttempts: limit, delayMs });
          await clock.sleep(delayMs, signal);
        } finally {
          pass.leave("failed");
        }
      }
    },
  };
}

/** The reader must know when it is worth coming back. */
function waitTooLong(failure: ModelError, maxWaitMs: number): ModelError {
  const { code, message, status, requestId, cause } = failure;
  const pauseMs = pauseAskedBy(failure);
  if (pauseMs === undefined) return failure;
  const asked = `It asks to wait ${inWords(pauseMs)}, and a request waits at most ${inWords(maxWaitMs)} in all.`;
  return new ModelError(code, `${endSentence(message)} ${asked}`, {
    retryAfterMs: pauseMs,
    cause,
    status,
    requestId,
    advice: `Try again in ${inWords(pauseMs)}, or choose another model.${code === "rate-limited" ? ' With the setting "quota": {"wait": true} agents wait for it.' : ""}`,
  });
}

/** How long a refusal says that nothing will be answered, whether by a rate or by a quota that is used up. */
function pauseAskedBy({ retryAfterMs, quotaResetsInMs }: ModelError): number | undefined {
  return quotaResetsInMs === undefined ? retryAfterMs : Math.max(quotaResetsInMs, retryAfterMs ?? 0);
}

function inWords(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function reportIn(event: ModelEvent): QuotaReport | undefined {
  return event.type === "quota-reported" ? event : undefined;
}

/** Until when the quota is used up, where that is why a request was refused. */
async function noteRefusal(error: unknown, { quota }: RetryOptions): Promise<number | undefined> {
  if (quota === undefined || !(error instanceof ModelError) || error.code !== "rate-limited")
    return undefined;
  const { quotaResetsInMs, mayPass } = error;
  return mayPass && quotaResetsInMs !== undefined ? quota.refused(quotaResetsInMs) : undefined;
}

/** No request is made before the quota is there again; who may wait for it catches this. */
function quotaExhausted({ facts }: Model, closedUntil: number, cause?: ModelError): ModelError {
  const until = new Date(closedUntil).toISOString();
  const { status, requestId, answer } = cause ?? {};
  return new ModelError("quota-exhausted", `The quota of ${facts.provider} is used up until ${until}.`, {
    closedUntil,
    status,
    requestId,
    answer,
    cause,
    advice: `Continue after ${until}, or choose a model of another provider.`,
  });
}

interface Entry extends GatePass {
  /** Held until the state of the quota is known. */
  readonly turn: QuotaTurn | undefined;
}

/** Mostly nothing holds a request back, and then it waits for nothing, not even for a moment. */
function enterAtOnce({ coolDown, gate, quota, clock }: RetryOptions, signal: AbortSignal): Entry | undefined {
  signal.throwIfAborted();
  if (quota !== undefined || coolDown.until() > clock.now()) return undefined;
  if (gate === undefined) return { turn: undefined, leave: () => undefined };
  const pass = gate.tryEnter();
  return pass === undefined ? undefined : { turn: undefined, leave: pass.leave };
}

async function enter(model: Model, options: RetryOptions, signal: AbortSignal): Promise<Entry> {
  const given = await options.quota?.enter(signal);
  if (given !== undefined && given.type !== "entered") throw quotaExhausted(model, given.until);
  const turn = given?.turn;
  try {
    const pass = await enterWhenCool(options, signal);
    return {
      turn,
      leave(outcome) {
        turn?.leave();
        pass?.leave(outcome);
      },
    };
  } catch (error) {
    turn?.leave();
    throw error;
  }
}

/** A refusal that came while others waited at the gate holds them back too. */
async function enterWhenCool(
  { coolDown, gate, clock }: RetryOptions,
  signal: AbortSignal,
): Promise<GatePass | undefined> {
  while (true) {
    await coolDown.wait(signal);
    const known = coolDown.until();
    const pass = await gate?.enter(signal);
    const until = coolDown.until();
    if (until <= known || until <= clock.now()) return pass;
    pass?.leave("failed");
  }
}

/** Often enough for the shortest silence that is worth reporting. */
const signOfLifeMs = 20_000;

async function* reportingWaits(
  entering: Promise<Entry>,
  everyMs = signOfLifeMs,
): AsyncGenerator<ModelEvent, Entry> {
  const stillWaiting = Symbol("still waiting");
  let isInside = false;
  try {
    while (true) {
      const nap = Promise.withResolvers<typeof stillWaiting>();
      const timer = setTimeout(() => nap.resolve(stillWaiting), everyMs);
      try {
        const first = await Promise.race([entering, nap.promise]);
        if (first !== stillWaiting) {
          isInside = true;
          return first;
        }
      } finally {
        clearTimeout(timer);
      }
      yield { type: "request-waiting" };
    }
  } finally {
    // A caller that leaves while waiting must not keep the place that comes later.
    if (!isInside)
      entering.then(
        (pass) => pass.leave("failed"),
        () => undefined,
      );
  }
}

const tenMinutes = 600_000;
/** How long others are held back when the provider did not say for how long. */
const shortPause = 2000;
const refusals: ReadonlySet<string> = new Set(["rate-limited", "overloaded"]);

/** What the provider asked for and a little more, or a random part of a time that doubles with each attempt. */
export function delayBefore(attempt: number, failure: ModelError, random: () => number): number {
  const pauseMs = pauseAskedBy(failure);
  if (pauseMs !== undefined) return Math.ceil(pauseMs + random() * Math.max(250, pauseMs * 0.1));
  return Math.ceil(random() * Math.min(32_000, 500 * 2 ** (attempt - 1)));
}

/** Reads CLAUDE_CODE_MAX_RETRIES, which counts the attempts after the first: ten unless said, never more than fifteen. */
export function readMaxAttempts(maxRetries: string | undefined): number {
  const configured = maxRetries === undefined || maxRetries.trim() === "" ? Number.NaN : Number(maxRetries);
  return 1 + (Number.isInteger(configured) && configured >= 0 ? Math.min(configured, 15) : 10);
}

function failure(
  failure: ModelError,
  counts: { readonly attempt: number; readonly maxAttempts: number; readonly delayMs: number },
): ModelEvent {
  return {
    type: "attempt-failed",
    ...counts,
    code: failure.code,
    ...(failure.status === undefined ? {} : { status: failure.status }),
    message: failure.message,
  };
}

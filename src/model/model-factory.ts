import type { AnthropicAccess } from "./anthropic/anthropic-sender.ts";
import { type AdapterChoice, chooseAdapter } from "./choose-adapter.ts";
import type { CoolDowns, WaitClock } from "./cool-down.ts";
import { createHttpFetch } from "./create-http-fetch.ts";
import type { LoadPackage } from "./create-package-loader.ts";
import { lookUpModel } from "./look-up-model.ts";
import type { Model } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { findOverride, readModelOverrides } from "./read-model-overrides.ts";
import type { RequestGates } from "./request-gate.ts";
import type { ChosenModel } from "./select-subagent-model.ts";
import type { StallLimits } from "./stall-watch.ts";
import { readMaxAttempts, withRetry } from "./with-retry.ts";

export interface ModelFactoryOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly settings?: { readonly modelOverrides?: unknown; readonly modelPricing?: unknown };
  /** Runs the helper command that settings name, where they name one. */
  readonly apiKeyHelper?: () => Promise<string>;
  /** How packages of providers are found; only beside this program when absent. */
  readonly load?: LoadPackage;
  readonly coolDowns: CoolDowns;
  readonly gates?: RequestGates;
  readonly clock: WaitClock;
  readonly random: () => number;
  /** How long a provider may be silent; absent parts are as usual. */
  readonly timeouts?: Partial<StallLimits>;
  /** Wraps each model before anybody asks it. */
  readonly wrap?: (model: Model) => Model;
}

export interface ModelFactory {
  /** The model, ready to be asked; the same object for the same reference. */
  model(reference: ChosenModel): Promise<Model>;
  /** Which program would serve a model, and why that one. */
  describe(reference: ChosenModel): AdapterChoice;
}

const defaultTimeouts: StallLimits = { firstTokenMs: 300_000, betweenTokensMs: 120_000 };

/** Makes models of every provider, patient ones, and shares connections and cool-downs between them. */
export function createModelFactory(options: ModelFactoryOptions): ModelFactory {
  const { environment } = options;
  const models = new Map<string, Promise<Model>>();
  const fetch = usesProxy(environment) ? globalThis.fetch : createHttpFetch();
  const describe = (reference: ChosenModel): AdapterChoice =>
    chooseAdapter(reference, environment, options.apiKeyHelper !== undefined);

  async function create(reference: ChosenModel): Promise<Model> {
    const choice = describe(reference);
    switch (choice.adapter) {
      case "offline":
        return (await import("./offline/create-offline-model.ts")).createOfflineModel();
      case "anthropic":
        return patient(await createAnthropic(reference, { options, fetch }), options);
      case "ai-sdk": {
        const { createAiSdkModel } = await import("./ai-sdk/create-ai-sdk-model.ts");
        const { provider = "", id: modelId } = reference;
        const load = options.load === undefined ? {} : { load: options.load };
        const facts = findOverride(readModelOverrides(options.settings ?? {}), reference);
        return patient(
          await createAiSdkModel({ provider, modelId, environment, facts, ...load, ...timeoutsOf(options) }),
          options,
        );
      }
      case "none":
        throw new ModelError("unauthorized", choice.why, { advice: choice.advice });
    }
  }

  return {
    describe,
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

function timeoutsOf({ timeouts }: ModelFactoryOptions): Pick<ModelFactoryOptions, "timeouts"> {
  return timeouts === undefined ? {} : { timeouts };
}

async function createAnthropic(
  { id }: ChosenModel,
  { options, fetch }: { readonly options: ModelFactoryOptions; readonly fetch: typeof globalThis.fetch },
): Promise<Model> {
  const { createAnthropicModel } = await import("./anthropic/create-anthropic-model.ts");
  const overrides = readModelOverrides(options.settings ?? {});
  const wireId = overrides.names.get(id);
  return createAnthropicModel({
    id,
    facts: lookUpModel(id, overrides.facts).facts,
    ...(wireId === undefined ? {} : { wireId }),
    ...accessOf(options),
    fetch,
    timeouts: { ...defaultTimeouts, ...options.timeouts },
  });
}

function accessOf({ environment, apiKeyHelper }: ModelFactoryOptions): AnthropicAccess {
  const apiKey = textOf(environment["ANTHROPIC_API_KEY"]);
  const authToken = textOf(environment["ANTHROPIC_AUTH_TOKEN"]);
  const baseUrl = textOf(environment["ANTHROPIC_BASE_URL"]);
  return {
    ...(apiKeyHelper === undefined ? {} : { apiKeyHelper }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(authToken === undefined ? {} : { authToken }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    headers: readHeaders(environment["ANTHROPIC_CUSTOM_HEADERS"]),
  };
}

/** One header per line, as `Name: value`; of the same name the values are joined. */
function readHeaders(text = ""): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, name, value] = /^\s*([\w-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const key = name.toLowerCase();
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before},${value}`);
  }
  return Object.fromEntries(headers);
}

function patient(model: Model, options: ModelFactoryOptions): Model {
  const { coolDowns, gates, clock, random, environment } = options;
  return withRetry(model, {
    coolDown: coolDowns.of(model.facts.provider, model.facts.id),
    ...(gates === undefined ? {} : { gate: gates.of(model.facts.provider) }),
    clock,
    random,
    maxAttempts: readMaxAttempts(environment["CLAUDE_CODE_MAX_RETRIES"]),
  });
}

/** Our own transport knows no proxies; the built-in one does, where Node is configured to respect these variables. */
function usesProxy(environment: ModelFactoryOptions["environment"]): boolean {
  return ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].some(
    (name) => textOf(environment[name]) !== undefined,
  );
}

function textOf(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === "" ? undefined : value.trim();
}

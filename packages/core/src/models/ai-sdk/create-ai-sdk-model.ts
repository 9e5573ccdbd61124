import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createPackageLoader, isNotFound, type LoadPackage } from "../create-package-loader.ts";
import {
  createModelFromLanguageModel,
  type LanguageModel,
  type LanguageModelOptions,
} from "../language-model.ts";
import { lookUpModel } from "../look-up-model.ts";
import type { Model } from "../model.ts";
import { guardFetch } from "../model-error.ts";
import {
  type Environment,
  factorySettings,
  findProvider,
  knownProviders,
  type ProviderEntry,
} from "../provider-entry.ts";

export interface AiSdkModelOptions {
  /** The name before the slash in `provider/model`. */
  readonly provider: string;
  readonly modelId: string;
  readonly environment: Environment;
  readonly load?: LoadPackage;
  readonly facts?: LanguageModelOptions["facts"];
  readonly timeouts?: LanguageModelOptions["timeouts"];
}

/** A model of any provider that the Vercel AI SDK has a package for; the package is loaded here and not before. */
export async function createAiSdkModel(options: AiSdkModelOptions): Promise<Model> {
  const { provider, modelId, environment, facts, timeouts } = options;
  const entry = findProvider(provider, environment) ?? refuseProvider(provider);
  const { settings, missing } = factorySettings(entry, environment);
  if (missing.length > 0) {
    throw new RetinueError(
      "provider-not-configured",
      `${provider}/${modelId} needs ${missing.join(" and ")}.`,
      {
        advice: "Set it in the environment, or under `env` in a settings file.",
      },
    );
  }
  const factory = findFactory(entry, await loadPackage(entry, options.load ?? createPackageLoader()));
  const languageModel = makeLanguageModel(
    entry,
    modelId,
    factory({ fetch: guardFetch(globalThis.fetch), ...settings }),
  );
  return createModelFromLanguageModel(languageModel, {
    provider,
    takesResultFiles: entry.takesResultFiles,
    takesEffort: entry.takesEffort,
    requestOptions: entry.requestOptions,
    facts: { ...claudeFacts(modelId), ...defined(facts ?? {}) },
    timeouts,
  });
}

/** Claude models are the same by whatever provider they come; of others nothing is known here. */
function claudeFacts(modelId: string): LanguageModelOptions["facts"] {
  if (!modelId.includes("claude-")) return {};
  const { contextWindow, maxOutputTokens } = lookUpModel(modelId).facts;
  return { contextWindow, maxOutputTokens };
}

function refuseProvider(provider: string): never {
  const nearest = nearestName(provider, knownProviders());
  const known = knownProviders().join(", ");
  throw new RetinueError(
    "unknown-provider",
    `Unknown model provider "${provider}". Known providers: ${known}.`,
    {
      advice: nearest === undefined ? "Name one of these." : `Did you mean "${nearest}"?`,
    },
  );
}

async function loadPackage(entry: ProviderEntry, load: LoadPackage): Promise<unknown> {
  try {
    return await load(entry.package);
  } catch (error) {
    const isMissing = isNotFound(error, entry.package);
    const message = error instanceof Error ? error.message : String(error);
    const what = isMissing ? `is not installed` : `cannot be loaded: ${message}`;
    throw new RetinueError(
      "provider-package-missing",
      `The package ${entry.package} for ${entry.name} ${what}.`,
      {
        advice: isMissing ? `Run: npm install ${entry.package}` : `Run: npm install ${entry.package}@latest`,
        cause: error,
      },
    );
  }
}

type Factory = (settings: Readonly<Record<string, unknown>>) => unknown;

/** A package of this name convention spells its factory with capitals we cannot know. */
function findFactory(entry: ProviderEntry, module: unknown): Factory {
  const exported = new Map(Object.entries(isModule(module) ? module : {}));
  const wanted = entry.factories.map((name) => name.toLowerCase());
  const name = [...exported.keys()].find((candidate) => wanted.includes(candidate.toLowerCase()));
  const factory = name === undefined ? undefined : exported.get(name);
  if (typeof factory === "function") return factory as Factory; // The package's own contract; its result is checked.
  throw new RetinueError(
    "provider-package-unfit",
    `${entry.package} exports no ${entry.factories.join(" or ")}.`,
    {
      advice: `Run: npm install ${entry.package}@latest`,
    },
  );
}

function makeLanguageModel(entry: ProviderEntry, modelId: string, provider: unknown): LanguageModel {
  const make = methodOf(provider, "languageModel") ?? asMethod(provider);
  const made: unknown = make?.call(provider, modelId);
  if (isLanguageModel(made)) return made;
  throw new RetinueError(
    "provider-package-unfit",
    `${entry.package} provides no language model for "${modelId}".`,
    {
      advice: `Run: npm install ${entry.package}@latest`,
    },
  );
}

function isLanguageModel(value: unknown): value is LanguageModel {
  return methodOf(value, "doStream") !== undefined;
}

type Method = (argument: string) => unknown;

function methodOf(value: unknown, name: string): Method | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return asMethod(Reflect.get(value, name));
}

function asMethod(value: unknown): Method | undefined {
  return typeof value === "function" ? (value as Method) : undefined; // A foreign function; its result is checked.
}

function isModule(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) || typeof value === "function";
}

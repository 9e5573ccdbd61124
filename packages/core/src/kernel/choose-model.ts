import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import {
  aliasTable,
  type ChosenModel,
  type ModelLimits,
  type ModelOrigin,
  type ModelSelection,
  refuseModel,
  selectMainModel,
} from "@retinue/config/models/select-subagent-model.ts";
import type { LocalModel } from "../models/local-models.ts";
import type { Model } from "../models/model.ts";
import type { Decided } from "../planning/agent-plan.ts";
import { readLimitSettings } from "../planning/plan-limits.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { FolderContext, RuntimeContext, SharedResources } from "./runtime-context.ts";

interface ModelForSession {
  readonly model: Model;
  readonly decided: Decided<string>;
  /** The same as a reference, for children that inherit it. */
  readonly chosen: ChosenModel;
  /** What was named and did not count, each as one sentence. */
  readonly notes: readonly string[];
}

/** The program's own model, or the model that the call, the agent, the environment and settings lead to. */
export async function chooseModel(
  runtime: RuntimeContext,
  options: SessionSetup,
  definition: AgentDefinition | undefined,
): Promise<ModelForSession> {
  if (runtime.model !== undefined) {
    return {
      model: runtime.model,
      decided: { value: runtime.model.facts.id, from: "the program" },
      chosen: { id: runtime.model.facts.id },
      notes: budgetNotes(runtime.model, runtime, options),
    };
  }
  const selection = select(runtime, options, definition);
  const served = await findServing(runtime, selection);
  return {
    ...served,
    decided: { value: served.model.facts.id, from: served.from },
    notes: [...unclearNotes(selection), ...served.notes, ...budgetNotes(served.model, runtime, options)],
  };
}

/** What reads the answers of such servers is loaded only where they are asked. */
async function findLocalModel(runtime: SharedResources): Promise<LocalModel | undefined> {
  const servers = await runtime.localServers();
  if (servers.length === 0) return undefined;
  const { chooseLocalModel } = await import("../models/local-models.ts");
  return chooseLocalModel(servers);
}

/** The model that a skill asks for; a program that brought its own model has decided already. */
export function modelFinder(
  runtime: RuntimeContext,
  current?: ChosenModel,
): (name: string) => Promise<Model> {
  return async (name) => {
    if (runtime.model !== undefined) throw new RetinueError("model-fixed", "the program chose the model.");
    const { model, chosen } = await chooseModel(runtime, { model: name }, undefined);
    if (current !== undefined && isServed(runtime, current) && !isServed(runtime, chosen))
      throw new RetinueError("model-unserved", "no provider is configured for it.");
    return model;
  };
}

/**
 * The models that answer where another cannot, as the session or else settings name them. What cannot be used is an error
 * where the session names it, and a note where settings do.
 */
export async function chooseFallbacks(
  runtime: RuntimeContext,
  { fallbackModel }: Pick<SessionSetup, "fallbackModel">,
  current: ChosenModel,
): Promise<{ readonly names: readonly string[]; readonly notes: readonly string[] }> {
  const own = typeof fallbackModel === "string" ? [fallbackModel] : fallbackModel;
  const written = own ?? runtime.discovered.settings.settings.plain.fallbackModel ?? [];
  // A program that brought its own model has decided who answers.
  if (own === undefined && runtime.model !== undefined) return { names: [], notes: [] };
  const find = modelFinder(runtime, current);
  const names: string[] = [];
  const notes: string[] = [];
  for (const name of written) {
    try {
      await find(name);
      names.push(name);
    } catch (error) {
      if (!isRetinueError(error)) throw error;
      const text = `The fallback model ${JSON.stringify(name)} cannot be used: ${error.message}`;
      if (own !== undefined) throw new RetinueError("fallback-unusable", text, { advice: error.advice });
      notes.push(text);
    }
  }
  return { names, notes };
}

/** Whether a model other than the offline model would answer. */
export function isServed({ model, models }: RuntimeContext, chosen: ChosenModel): boolean {
  return (
    model !== undefined || chosen.provider === "offline" || models.describe(chosen).adapter !== "offline"
  );
}

/** The offline model answers only where it is named: no program may take what it says for the answer of a real one. */
export function refuseUnserved(
  runtime: RuntimeContext,
  named: string | undefined,
  chosen: ChosenModel,
): void {
  if (!isServed(runtime, chosen)) throw noCredentials(named);
}

export function noCredentials(named: string | undefined): RetinueError {
  const asked = named === undefined || named.trim() === "" ? "" : ` for the model ${JSON.stringify(named)}`;
  return new RetinueError("no-credentials", `No API key is configured${asked}.`, {
    advice:
      "Save one with `retinue auth login`, set ANTHROPIC_API_KEY or the key of another provider, or choose the model `offline`, which needs none.",
  });
}

type Serving = Pick<ModelForSession, "model" | "chosen" | "notes"> & { readonly from: string };

/** Where nothing is named and nothing configured, a server on this machine goes before the offline model. */
async function findServing(runtime: RuntimeContext, selection: ModelSelection): Promise<Serving> {
  const usual: Serving = {
    model: await runtime.models.model(selection.model),
    chosen: selection.model,
    from: originNames[selection.origin],
    notes: [],
  };
  const isOpen = selection.origin === "default" && usual.model.facts.provider === "offline";
  const local = isOpen ? await findLocalModel(runtime) : undefined;
  if (local === undefined) return usual;
  const { provider, id, server } = local;
  const written = `${provider}/${id}`;
  const found = `${server.name} was found at ${server.address}`;
  const refusal = refuseModel(
    { provider, id },
    modelLimits(runtime),
    aliasTable({ environment: runtime.environment }),
  );
  if (refusal !== undefined)
    return { ...usual, notes: [`${found}, but the offline model answers: ${refusal}`] };
  try {
    const model = await runtime.models.model({ provider, id });
    const note = `No key is set and ${found}, so ${written} answers. RETINUE_LOCAL_MODELS=0 disables this.`;
    return { model, chosen: { provider, id }, from: `no key is set and ${found}`, notes: [note] };
  } catch (error) {
    if (!isRetinueError(error) || !error.code.startsWith("provider-package-")) throw error;
    const advice = error.advice === undefined ? "" : ` ${error.advice}`;
    return { ...usual, notes: [`${found}, but the offline model answers: ${error.message}${advice}`] };
  }
}

/** The limits of settings on models, for the main agent and for its children. */
export function modelLimits({ discovered }: Pick<FolderContext, "discovered">): ModelLimits {
  const { availableModels, deniedModels } = discovered.settings.settings.plain;
  return {
    available: availableModels,
    denied: deniedModels,
  };
}

const originNames: Readonly<Record<ModelOrigin, string>> = {
  call: "the call",
  flag: "the call",
  definition: "the definition",
  "subagent-variable": "CLAUDE_CODE_SUBAGENT_MODEL",
  parent: "the parent",
  variable: "ANTHROPIC_MODEL",
  settings: "settings",
  default: "the default",
};

function select(
  runtime: FolderContext,
  options: SessionSetup,
  definition: AgentDefinition | undefined,
): ModelSelection {
  const limits = modelLimits(runtime);
  const aliases = aliasTable({ environment: runtime.environment });
  const selection = selectMainModel({
    flag: options.model,
    definition: definition?.model,
    variable: runtime.environment["ANTHROPIC_MODEL"],
    settings: runtime.discovered.settings.settings.plain.model,
    aliases,
    isPlanning: options.permissionMode === "plan",
  });
  const refusal = refuseModel(selection.model, limits, aliases);
  const unclear = selection.unclear.find(({ origin }) => origin === "flag");
  if (unclear !== undefined) {
    const advice = unclear.nearest === undefined ? {} : { advice: `Did you mean ${unclear.nearest}?` };
    throw new RetinueError("unclear-model", `The model cannot be used: ${unclear.why}.`, advice);
  }
  if (refusal === undefined) return selection;
  throw new RetinueError("model-denied", refusal, {
    advice: "Choose another with --model, or change the setting.",
  });
}

function unclearNotes({ unclear }: ModelSelection): readonly string[] {
  return unclear.map(({ origin, why }) => `The model of ${originNames[origin]} was ignored: ${why}.`);
}

function budgetNotes(
  { facts }: Model,
  { discovered }: Pick<FolderContext, "discovered">,
  { maxBudgetUsd, limits }: SessionSetup,
): readonly string[] {
  if (facts.price !== undefined) return [];
  const { tree, unknownPrice } = readLimitSettings(discovered.settings.settings.plain.limits);
  const isLimited = (maxBudgetUsd ?? limits?.tree?.usd ?? tree.usd) !== undefined;
  if (!isLimited) return [];
  const effect = unknownPrice === "refuse" ? "its calls are refused" : "the budget cannot be enforced";
  return [`The price of ${facts.id} is unknown, so ${effect}.`];
}

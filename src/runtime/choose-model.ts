import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { isRetinueError, RetinueError } from "../foundation/retinue-error.ts";
import { aliasTable } from "../model/alias-table.ts";
import type { LocalModel } from "../model/local-models.ts";
import type { Model } from "../model/model.ts";
import { type ModelLimits, refuseModel } from "../model/model-limits.ts";
import {
  type ChosenModel,
  type ModelOrigin,
  type ModelSelection,
  selectMainModel,
} from "../model/select-subagent-model.ts";
import { readLimitSettings } from "../planning/limit-settings.ts";
import type { Decided } from "../planning/run-plan.ts";
import type { SessionSetup } from "./options/runtime-setup.ts";
import type { RuntimeContext } from "./runtime-context.ts";

export interface ModelForSession {
  readonly model: Model;
  readonly decided: Decided<string>;
  /** The same as a reference, for children that inherit it. */
  readonly chosen: ChosenModel;
  /** What was named and did not count, each as one sentence. */
  readonly notes: readonly string[];
}

/** The program's own model, or the one that the call, the agent, the environment and settings lead to. */
export async function chooseModel(
  world: RuntimeContext,
  options: SessionSetup,
  definition: AgentDefinition | undefined,
): Promise<ModelForSession> {
  if (world.model !== undefined) {
    return {
      model: world.model,
      decided: { value: world.model.facts.id, from: "the program" },
      chosen: { id: world.model.facts.id },
      notes: budgetNotes(world.model, world, options),
    };
  }
  const selection = select(world, options, definition);
  const refusal = refuseModel(
    selection.model,
    modelLimits(world),
    aliasTable({ environment: world.environment }),
  );
  if (refusal !== undefined) {
    throw new RetinueError("model-denied", refusal, {
      advice: "Choose another with --model, or change the setting.",
    });
  }
  const served = await findServing(world, selection);
  return {
    ...served,
    decided: { value: served.model.facts.id, from: served.from },
    notes: [...unclearNotes(selection), ...served.notes, ...budgetNotes(served.model, world, options)],
  };
}

/** What reads the answers of such servers is loaded only where they are asked. */
async function findLocalModel(world: RuntimeContext): Promise<LocalModel | undefined> {
  const servers = await world.localServers();
  if (servers.length === 0) return undefined;
  const { chooseLocalModel } = await import("../model/local-models.ts");
  return chooseLocalModel(servers);
}

/** The model that a skill asks for; a program that brought its own model has decided already. */
export function modelFinder(world: RuntimeContext, current?: ChosenModel): (name: string) => Promise<Model> {
  return async (name) => {
    if (world.model !== undefined) throw new RetinueError("model-fixed", "the program has chosen the model.");
    const { model, chosen } = await chooseModel(world, { model: name }, undefined);
    if (current !== undefined && isServed(world, current) && !isServed(world, chosen))
      throw new RetinueError("model-unserved", "no provider is configured for it.");
    return model;
  };
}

/** Whether somebody else than the offline model, standing in, would answer. */
export function isServed({ model, models }: RuntimeContext, chosen: ChosenModel): boolean {
  return (
    model !== undefined || chosen.provider === "offline" || models.describe(chosen).adapter !== "offline"
  );
}

type Serving = Pick<ModelForSession, "model" | "chosen" | "notes"> & { readonly from: string };

/** Where nothing is named and nothing configured, a server on this machine goes before the offline model. */
async function findServing(world: RuntimeContext, selection: ModelSelection): Promise<Serving> {
  const isOpen = selection.origin === "default" && !isServed(world, selection.model);
  const local = isOpen ? await findLocalModel(world) : undefined;
  const usual = async (notes: readonly string[]): Promise<Serving> => ({
    model: await world.models.model(selection.model),
    chosen: selection.model,
    from: originNames[selection.origin],
    notes,
  });
  if (local === undefined) return usual([]);
  const { provider, id, server } = local;
  const written = `${provider}/${id}`;
  const found = `${server.name} was found at ${server.address}`;
  const refusal = refuseModel(
    { provider, id },
    modelLimits(world),
    aliasTable({ environment: world.environment }),
  );
  if (refusal !== undefined) return usual([`${found}, but the offline model answers: ${refusal}`]);
  try {
    const model = await world.models.model({ provider, id });
    const note = `No key is set and ${found}, so ${written} answers. RETINUE_LOCAL_MODELS=0 switches this off.`;
    return { model, chosen: { provider, id }, from: `no key is set and ${found}`, notes: [note] };
  } catch (error) {
    if (!isRetinueError(error) || !error.code.startsWith("provider-package-")) throw error;
    const advice = error.advice === undefined ? "" : ` ${error.advice}`;
    return usual([`${found}, but the offline model answers: ${error.message}${advice}`]);
  }
}

/** What settings say about models, for the main agent and for its children. */
export function modelLimits({ discovered }: RuntimeContext): ModelLimits {
  const { availableModels, deniedModels } = discovered.settings.settings.plain;
  return {
    ...(availableModels === undefined ? {} : { available: availableModels }),
    ...(deniedModels === undefined ? {} : { denied: deniedModels }),
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
  world: RuntimeContext,
  options: SessionSetup,
  definition: AgentDefinition | undefined,
): ModelSelection {
  const selection = selectMainModel({
    flag: options.model,
    definition: definition?.model,
    variable: world.environment["ANTHROPIC_MODEL"],
    settings: world.discovered.settings.settings.plain.model,
    aliases: aliasTable({ environment: world.environment }),
    isPlanning: options.permissionMode === "plan",
  });
  const unclear = selection.unclear.find(({ origin }) => origin === "flag");
  if (unclear === undefined) return selection;
  const advice = unclear.nearest === undefined ? {} : { advice: `Did you mean ${unclear.nearest}?` };
  throw new RetinueError("unclear-model", `The model cannot be used: ${unclear.why}.`, advice);
}

function unclearNotes({ unclear }: ModelSelection): readonly string[] {
  return unclear.map(({ origin, why }) => `The model of ${originNames[origin]} does not count: ${why}.`);
}

function budgetNotes(
  { facts }: Model,
  { discovered }: RuntimeContext,
  { maxBudgetUsd, limits }: SessionSetup,
): readonly string[] {
  const { tree, unknownPrice } = readLimitSettings(discovered.settings.settings.plain.limits);
  const isLimited = (maxBudgetUsd ?? limits?.tree?.usd ?? tree.usd) !== undefined;
  if (!isLimited || facts.price !== undefined) return [];
  const effect = unknownPrice === "refuse" ? "its calls are refused" : "the budget cannot be kept";
  return [`The price of ${facts.id} is not known, so ${effect}.`];
}

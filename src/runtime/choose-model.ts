import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { Fault } from "../foundation/fault.ts";
import type { Model } from "../model/model.ts";
import { aliasTable } from "../model/model-aliases.ts";
import { type ModelLimits, refuseModel } from "../model/model-limits.ts";
import {
  type ChosenModel,
  type ModelOrigin,
  type ModelSelection,
  selectMainModel,
} from "../model/select-model.ts";
import { readLimitSettings } from "../planning/limit-settings.ts";
import type { Decided } from "../planning/run-plan.ts";
import type { SessionOptions } from "./runtime-options.ts";
import type { SessionWorld } from "./session-world.ts";

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
  world: SessionWorld,
  options: SessionOptions,
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
    throw new Fault("model-denied", refusal, {
      advice: "Choose another with --model, or change the setting.",
    });
  }
  const model = await world.models.model(selection.model);
  return {
    model,
    decided: { value: model.facts.id, from: originNames[selection.origin] },
    chosen: selection.model,
    notes: [...unclearNotes(selection), ...budgetNotes(model, world, options)],
  };
}

/** The model that a skill asks for; a program that brought its own model has decided already. */
export function modelFinder(world: SessionWorld): (name: string) => Promise<Model> {
  return async (name) => {
    if (world.model !== undefined) throw new Fault("model-fixed", "the program has chosen the model.");
    return (await chooseModel(world, { model: name }, undefined)).model;
  };
}

/** What settings say about models, for the main agent and for its children. */
export function modelLimits({ discovered }: SessionWorld): ModelLimits {
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
  world: SessionWorld,
  options: SessionOptions,
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
  throw new Fault("unclear-model", `The model cannot be used: ${unclear.why}.`, advice);
}

function unclearNotes({ unclear }: ModelSelection): readonly string[] {
  return unclear.map(({ origin, why }) => `The model of ${originNames[origin]} does not count: ${why}.`);
}

function budgetNotes(
  { facts }: Model,
  { discovered }: SessionWorld,
  { maxBudget, limits }: SessionOptions,
): readonly string[] {
  const { tree, unknownPrice } = readLimitSettings(discovered.settings.settings.plain.limits);
  const isLimited = (maxBudget ?? limits?.tree?.usd ?? tree.usd) !== undefined;
  if (!isLimited || facts.price !== undefined) return [];
  const effect = unknownPrice === "refuse" ? "its calls are refused" : "the budget cannot be kept";
  return [`The price of ${facts.id} is not known, so ${effect}.`];
}

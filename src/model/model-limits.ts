import { matchesPattern } from "../foundation/match-pattern.ts";
import type { AliasTable } from "./alias-table.ts";
import { parseModelReference, resolveModelReference } from "./model-reference.ts";
import type { ChosenModel } from "./select-subagent-model.ts";

/** Which models settings let agents use; an absent list limits nothing. */
export interface ModelLimits {
  readonly available?: readonly string[];
  readonly denied?: readonly string[];
}

/** Why a model may not be used, or undefined. An entry is an id, an alias, `provider/model`, or one with stars. */
export function refuseModel(
  model: ChosenModel,
  { available, denied }: ModelLimits,
  aliases: AliasTable,
): string | undefined {
  const name = model.provider === undefined ? model.id : `${model.provider}/${model.id}`;
  const names = (entry: string): boolean => isNamed(model, entry.trim(), aliases);
  if (denied?.some(names)) return `Settings forbid the model ${name} (deniedModels).`;
  if (available === undefined || available.some(names)) return undefined;
  return `Settings do not list the model ${name} (availableModels: ${available.join(", ")}).`;
}

function isNamed({ id, provider }: ChosenModel, entry: string, aliases: AliasTable): boolean {
  const own = [id, ...(provider === undefined ? [] : [`${provider}/${id}`])].map((name) =>
    name.toLowerCase(),
  );
  if (own.some((name) => matchesPattern(entry.toLowerCase(), name))) return true;
  const resolved = resolveModelReference(parseModelReference(entry, aliases), { aliases });
  return resolved.type === "model" && resolved.id === id && resolved.provider === provider;
}

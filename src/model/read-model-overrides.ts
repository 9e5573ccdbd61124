import type { Price } from "../conversation/usage.ts";
import { isRecord } from "../foundation/json-record.ts";
import type { ModelOverride, ModelOverrides } from "./look-up-model.ts";
import type { ChosenModel } from "./select-subagent-model.ts";

export interface ReadOverrides {
  /** Facts by model id, for the catalog. */
  readonly facts: ModelOverrides;
  /** What to send instead of a model's id, such as the name of a deployment. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Reads the settings `modelOverrides` (a name to send instead, or facts) and `modelPricing` (dollars for a million
 * tokens). What is not of that form is passed over.
 */
export function readModelOverrides(settings: {
  readonly modelOverrides?: unknown;
  readonly modelPricing?: unknown;
}): ReadOverrides {
  const facts = new Map<string, ModelOverride>();
  const names = new Map<string, string>();
  for (const [id, value] of entriesOf(settings.modelOverrides)) {
    if (typeof value === "string" && value.trim() !== "") names.set(id, value.trim());
    if (isRecord(value)) facts.set(id, readOverride(value));
  }
  for (const [id, value] of entriesOf(settings.modelPricing)) {
    const price = readPrice(value);
    if (price !== undefined) facts.set(id, { ...facts.get(id), price });
  }
  return { facts, names };
}

/** What settings say of a model of another provider, under `provider/model` or the bare name. */
export function findOverride({ facts }: ReadOverrides, { provider, id }: ChosenModel): ModelOverride {
  return facts.get(`${provider}/${id}`) ?? facts.get(id) ?? {};
}

function readOverride(value: Readonly<Record<string, unknown>>): ModelOverride {
  const contextWindow = positive(value["contextWindow"]);
  const maxOutputTokens = positive(value["maxOutputTokens"]);
  const price = readPrice(value["price"]);
  return {
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(price === undefined ? {} : { price }),
  };
}

/** Cache rates that are not said are the provider's usual multiples of the input's. */
function readPrice(value: unknown): Price | undefined {
  if (!isRecord(value)) return undefined;
  const input = amount(value["input"]);
  const output = amount(value["output"]);
  if (input === undefined || output === undefined) return undefined;
  return {
    input,
    output,
    cacheRead: amount(value["cacheRead"]) ?? input * 0.1,
    cacheWrite: amount(value["cacheWrite"]) ?? input * 1.25,
  };
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return value !== undefined && isRecord(value) ? Object.entries(value) : [];
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}

function amount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

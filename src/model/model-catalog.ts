import type { Price } from "../conversation/usage.ts";
import { shippedModels } from "./catalog-data.ts";
import type { ModelFacts } from "./model.ts";

export type Effort = "low" | "medium" | "high" | "xhigh" | "max";

/** What a request to a model may hold. */
export interface ModelTraits {
  /** `always`: cannot be switched off. `adaptive`: the model decides how much. `budget`: takes a number of tokens. */
  readonly thinking: "always" | "adaptive" | "budget" | "none";
  readonly efforts: readonly Effort[];
  /** Whether the model can be made to use one certain tool. */
  readonly forcedTool: boolean;
  readonly serverTools: boolean;
}

export interface CatalogEntry {
  /** The model's id, or its beginning: a date or version that follows a dash belongs to the same model. */
  readonly prefix: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  readonly price?: Price;
  /** When the price was looked up, as year and month. */
  readonly priceAsOf?: string;
  readonly traits: ModelTraits;
}

/** What settings say of a model, by id or beginning of an id. */
export interface ModelOverride {
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  readonly price?: Price;
}

export type ModelOverrides = ReadonlyMap<string, ModelOverride>;

export interface KnownModel {
  readonly facts: ModelFacts;
  readonly traits: ModelTraits;
  /** The id as the provider knows it, without our window suffix. */
  readonly wireId: string;
  /** Set when the larger window has to be asked for. */
  readonly asksForLargeWindow: boolean;
  readonly priceAsOf?: string;
}

const millionTokens = 1_000_000;

/** What is known of a Claude model. An id that is not in the table gets careful defaults and no price. */
export function lookUpModel(id: string, overrides: ModelOverrides = new Map()): KnownModel {
  const wireId = id.replace(/\[[^[\]]*\]$/, "");
  const entry = findEntry(wireId);
  const override =
    findByPrefix(
      wireId,
      [...overrides].map(([prefix, value]) => ({ prefix, value })),
    )?.value ?? {};
  const isLarge = /\[1m\]$/i.test(id);
  const window = isLarge ? Math.max(millionTokens, entry.contextWindow) : entry.contextWindow;
  const price = override.price ?? entry.price;
  return {
    facts: {
      id,
      provider: "anthropic",
      contextWindow: override.contextWindow ?? window,
      maxOutputTokens: override.maxOutputTokens ?? entry.maxOutputTokens,
      ...(price === undefined ? {} : { price }),
      supportsServerTools: entry.traits.serverTools,
    },
    traits: entry.traits,
    wireId,
    asksForLargeWindow: isLarge && entry.contextWindow < millionTokens,
    ...(override.price === undefined && entry.priceAsOf !== undefined ? { priceAsOf: entry.priceAsOf } : {}),
  };
}

function findEntry(wireId: string): CatalogEntry {
  return findByPrefix(familyId(wireId), shippedModels) ?? unknownModel;
}

const unknownModel: CatalogEntry = {
  prefix: "",
  contextWindow: 200_000,
  maxOutputTokens: 32_000,
  traits: { thinking: "none", efforts: [], forcedTool: true, serverTools: false },
};

/** `us.anthropic.claude-sonnet-4-6-v1:0` and `claude-sonnet-4-6@20260101` are claude-sonnet-4-6 to the catalog. */
function familyId(wireId: string): string {
  const start = wireId.toLowerCase().indexOf("claude-");
  return start === -1 ? wireId.toLowerCase() : wireId.toLowerCase().slice(start).replace("@", "-");
}

/** The longest beginning wins; `claude-opus-5` must not speak for `claude-opus-55`, nor for a later `claude-opus-5-9`. */
function findByPrefix<T extends { readonly prefix: string }>(
  id: string,
  entries: readonly T[],
): T | undefined {
  let best: T | undefined;
  for (const entry of entries) {
    if (!belongsTo(id, entry.prefix) || (best !== undefined && best.prefix.length >= entry.prefix.length))
      continue;
    best = entry;
  }
  return best;
}

/** After the prefix only a date or a deployment's version may follow: a short number would be another model. */
function belongsTo(id: string, prefix: string): boolean {
  if (!id.startsWith(prefix)) return false;
  const rest = id.slice(prefix.length);
  return rest === "" || /^-(\d{6,}|0$|v\d|latest|preview|fast)/.test(rest);
}

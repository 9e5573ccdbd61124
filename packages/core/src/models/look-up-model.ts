import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { Price } from "../conversation/usage.ts";
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

interface CatalogEntry {
  /** The model's id, or its beginning: a date or version that follows a dash belongs to the same model. */
  readonly prefix: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  readonly price?: Price;
  /** When the price was looked up, as year and month. */
  readonly priceAsOf?: string;
  readonly traits: ModelTraits;
}

/** What settings specify for a model, by id or beginning of an id. */
interface ModelOverride {
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  readonly price?: Price;
}

type ModelOverrides = ReadonlyMap<string, ModelOverride>;

export interface KnownModel {
  readonly facts: ModelFacts;
  readonly traits: ModelTraits;
  /** The id as the provider knows it, without our window suffix. */
  readonly wireId: string;
  /** Set when the larger window has to be asked for. */
  readonly asksForLargeWindow: boolean;
  /** Its provider can load tools in the middle of a conversation. */
  readonly defersTools: boolean;
  readonly priceAsOf?: string;
}

const millionTokens = 1_000_000;

/** What is known of a Claude model. An id that is not in the table gets careful defaults and no price. */
export function lookUpModel(id: string, overrides: ModelOverrides = new Map()): KnownModel {
  const wireId = id.replace(/\[[^[\]]*\]$/, "");
  const entry = findByPrefix(familyId(wireId), shippedModels) ?? unknownModel;
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
      price,
      supportsServerTools: entry.traits.serverTools,
    },
    traits: entry.traits,
    wireId,
    asksForLargeWindow: isLarge && entry.contextWindow < millionTokens,
    defersTools: entry !== unknownModel && !entry.prefix.startsWith("claude-3"),
    ...(override.price === undefined && entry.priceAsOf !== undefined ? { priceAsOf: entry.priceAsOf } : {}),
  };
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

/** The longest beginning wins; `claude-opus-5` must not match `claude-opus-55`, nor for a later `claude-opus-5-9`. */
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

/** Claude models as their provider documents them. Settings override each line. */
export const shippedModels: readonly CatalogEntry[] = `
  claude-fable-5-2   | 1M   | 128k |              |         | always
  claude-fable-5-1   | 1M   | 128k | 10 50 0.25 12.5 | 2026-10 | always
  claude-fable-5     | 1M   | 128k | 10 50 1 12.5 | 2026-10 | thinks
  claude-mythos-5-2  | 1M   | 128k |              |         | always
  claude-mythos-5-1  | 1M   | 128k | 10 50 0.25 12.5 | 2026-10 | always
  claude-mythos-5    | 1M   | 128k | 10 50 1 12.5 | 2026-10 | thinks
  claude-opus-5-5    | 1M   | 128k | 4 20 0.2 5   | 2026-10 | always
  claude-opus-5      | 1M   | 128k | 5 25 0.5 6.25 | 2026-10 | adaptive
  claude-opus-4-8    | 1M   | 128k | 5 25 0.5 6.25 | 2026-10 | adaptive
  claude-opus-4-7    | 1M   | 128k | 5 25 0.5 6.25 | 2026-10 | adaptive
  claude-opus-4-6    | 1M   | 128k | 5 25 0.5 6.25 | 2026-10 | older
  claude-opus-4-5    | 200k | 64k  | 5 25 0.5 6.25 | 2026-10 | oldest
  claude-opus-4-1    | 200k | 32k  | 15 75 1.5 18.75 | 2026-10 | budget
  claude-opus-4      | 200k | 32k  | 15 75 1.5 18.75 | 2026-10 | budget
  claude-sonnet-5-5  | 1M   | 128k | 2 10 0.2 2.5 | 2026-10 | unforced
  claude-sonnet-5    | 1M   | 128k | 2 10 0.2 2.5 | 2026-10 | adaptive
  claude-sonnet-4-6  | 1M   | 64k  | 3 15 0.3 3.75 | 2026-10 | older
  claude-sonnet-4-5  | 200k | 64k  | 3 15 0.3 3.75 / 200k 6 22.5 0.6 7.5 | 2026-10 | budget
  claude-sonnet-4    | 200k | 64k  | 3 15 0.3 3.75 / 200k 6 22.5 0.6 7.5 | 2026-10 | budget
  claude-3-7-sonnet  | 200k | 64k  | 3 15 0.3 3.75 | 2025-11 | budget
  claude-3-5-sonnet  | 200k | 8k   | 3 15 0.3 3.75 | 2025-11 | plain
  claude-haiku-5-5   | 1M   | 128k | 0.1 0.5 0.01 0.125 / 100k 0.5 2.5 0.05 0.625 | 2026-10, cache read by the usual multiple | adaptive
  claude-haiku-4-5   | 200k | 64k  | 1 5 0.1 1.25 | 2026-10 | budget
  claude-3-5-haiku   | 200k | 8k   | 0.8 4 0.08 1 | 2025-11 | plain
`
  .trim()
  .split("\n")
  .map((line) => {
    const [prefix = "", window = "", answer = "", price = "", month = "", kind = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    return {
      prefix,
      contextWindow: readTokens(window),
      maxOutputTokens: readTokens(answer),
      ...(price === "" ? {} : { price: readPrice(price), priceAsOf: month }),
      traits: traitsOf(kind),
    };
  });

function readTokens(text: string): number {
  const unit = text.endsWith("M") ? 1_000_000 : 1_000;
  return Number.parseInt(text, 10) * unit;
}

function readPrice(text: string): Price {
  const [usual = "", long] = text.split("/");
  const rates = readRates(usual);
  if (long === undefined) return rates;
  const [over = "", ...rest] = long.trim().split(" ");
  return { ...rates, longPrompt: { overTokens: readTokens(over), ...readRates(rest.join(" ")) } };
}

function readRates(text: string): Price {
  const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = text.trim().split(" ").map(Number);
  return { input, output, cacheRead, cacheWrite };
}

function traitsOf(kind: string): ModelTraits {
  const all: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];
  const common = { forcedTool: true, serverTools: true };
  switch (kind) {
    case "always":
      return { ...common, thinking: "always", efforts: all, forcedTool: false };
    case "thinks":
      return { ...common, thinking: "always", efforts: all };
    case "unforced":
      return { ...common, thinking: "adaptive", efforts: all, forcedTool: false };
    case "adaptive":
      return { ...common, thinking: "adaptive", efforts: all };
    case "older":
      return { ...common, thinking: "adaptive", efforts: ["low", "medium", "high", "max"] };
    case "oldest":
      return { ...common, thinking: "budget", efforts: ["low", "medium", "high"] };
    case "budget":
      return { ...common, thinking: "budget", efforts: [] };
    default:
      return { ...common, thinking: "none", efforts: [], serverTools: false };
  }
}

interface ReadOverrides {
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
    if (isRecord(value)) {
      const contextWindow = positive(value["contextWindow"]);
      const maxOutputTokens = positive(value["maxOutputTokens"]);
      const price = readSettingPrice(value["price"]);
      facts.set(id, {
        contextWindow,
        maxOutputTokens,
        price,
      });
    }
  }
  for (const [id, value] of entriesOf(settings.modelPricing)) {
    const price = readSettingPrice(value);
    if (price !== undefined) facts.set(id, { ...facts.get(id), price });
  }
  return { facts, names };
}

/** What settings specify for a model of another provider, under `provider/model` or the bare name. */
export function findOverride({ facts }: ReadOverrides, { provider, id }: ChosenModel): ModelOverride {
  return facts.get(`${provider}/${id}`) ?? facts.get(id) ?? {};
}

/** Cache rates that are not said are the provider's usual multiples of the input's. */
function readSettingPrice(value: unknown): Price | undefined {
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

import type { Price } from "../conversation/usage.ts";
import type { CatalogEntry, Effort, ModelTraits } from "./model-catalog.ts";

/** Claude models as their provider documents them. Settings override each line. */
export const shippedModels: readonly CatalogEntry[] = readTable(`
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
`);

/**
 * Columns: id | window | longest answer | dollars for a million tokens (input, output, cache read, cache write; after a
 * slash, how long a prompt must be for the rates that follow) | month of the price | kind of request it takes.
 */
function readTable(table: string): readonly CatalogEntry[] {
  return table
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
}

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

import { isRecord } from "../foundation/json-value.ts";
import { mergeValues } from "./merge-values.ts";

/** The parts of `limits` that are ceilings: a later layer may lower them, never raise them. */
const ceilings: ReadonlySet<string> = new Set(["agent", "tree"]);

/** Lays one `limits` over another; of two ceilings the smaller one stays, whichever layer it is from. */
export function mergeLimits(low: unknown, high: unknown): unknown {
  const merged = mergeValues(low, high);
  if (!isRecord(merged) || !isRecord(low) || !isRecord(high)) return merged;
  const entries = Object.entries(merged).map(([key, value]): [string, unknown] => [
    key,
    ceilings.has(key) ? smallerParts(low[key], high[key], value) : value,
  ]);
  return Object.fromEntries(entries);
}

function smallerParts(low: unknown, high: unknown, merged: unknown): unknown {
  if (!isRecord(low) || !isRecord(high) || !isRecord(merged)) return merged;
  const entries = Object.entries(merged).map(([key, value]): [string, unknown] => {
    const before = Object.hasOwn(low, key) ? low[key] : undefined;
    const lowers = typeof before === "number" && typeof value === "number" && before < value;
    return [key, lowers ? before : value];
  });
  return Object.fromEntries(entries);
}

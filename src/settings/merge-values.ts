import { isRecord } from "../foundation/json-value.ts";

/** Lays one JSON value over another: objects key by key, lists one after the other without repeats, else the higher. */
export function mergeValues(low: unknown, high: unknown): unknown {
  if (Array.isArray(low) && Array.isArray(high))
    return withoutRepeats([...low, ...high], (value) => JSON.stringify(value));
  if (!isRecord(low) || !isRecord(high)) return high;
  const keys = new Set([...Object.keys(low), ...Object.keys(high)]);
  return Object.fromEntries([...keys].map((key) => [key, mergeKey(low, high, key)]));
}

/** Keeps the first of those that are the same. */
export function withoutRepeats<T>(values: readonly T[], identity: (value: T) => string): T[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const key = identity(value);
    return seen.has(key) ? false : seen.add(key) !== undefined;
  });
}

/** The dotted names of all that is set in a value: of an object its parts, of anything else the name itself. */
export function settingNames(name: string, value: unknown): string[] {
  if (!isRecord(value) || Object.keys(value).length === 0) return [name];
  return Object.entries(value).flatMap(([key, part]) => settingNames(`${name}.${key}`, part));
}

function mergeKey(
  low: Readonly<Record<string, unknown>>,
  high: Readonly<Record<string, unknown>>,
  key: string,
): unknown {
  if (!Object.hasOwn(high, key)) return low[key];
  return Object.hasOwn(low, key) ? mergeValues(low[key], high[key]) : high[key];
}

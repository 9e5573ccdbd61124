import { isRecord } from "../foundation/json-value.ts";
import { isWiderMode } from "../permissions/compare-modes.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { DefinitionKey } from "./definition-keys.ts";

/** Of a limit that stands several times, the narrower meaning holds; elsewhere the last one. Values in file order. */
export function combineRepeated(key: DefinitionKey, values: readonly unknown[]): unknown {
  const said = values.filter((value) => value !== undefined);
  if (addsUp(key)) return joined(said);
  return said.reduce<unknown>(
    (earlier, later) => (earlier === undefined ? later : narrower(key, earlier, later)),
    undefined,
  );
}

/** A field that stands under several spellings: denials and hooks of all hold; else the first that says anything. */
export function combineSpellings(key: DefinitionKey, readers: readonly (() => unknown)[]): unknown {
  if (addsUp(key)) return joined(readers.map((read) => read()).filter((value) => value !== undefined));
  for (const read of readers) {
    const value = read();
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Fields in which every entry takes something away or guards it. */
export function addsUp(key: DefinitionKey): boolean {
  return key === "disallowedTools" || key === "hooks";
}

function joined(lists: readonly unknown[]): unknown {
  return lists.length < 2 ? lists[0] : [...new Set(lists.flat())];
}

function narrower(key: DefinitionKey, earlier: unknown, later: unknown): unknown {
  if (key === "tools" && Array.isArray(earlier) && Array.isArray(later))
    return later.filter((entry) => earlier.includes(entry));
  if (key === "limits" && isRecord(earlier) && isRecord(later)) return smallest(earlier, later);
  // The reader of `permissionMode` gives nothing but modes.
  if (key === "permissionMode" && isWiderMode(later as PermissionMode, earlier as PermissionMode))
    return earlier;
  return later;
}

/** Of each limit the smaller number. */
function smallest(
  earlier: Readonly<Record<string, unknown>>,
  later: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const both = Object.keys(earlier).filter((key) => Object.hasOwn(later, key));
  const least = both.map((key) => [key, Math.min(Number(earlier[key]), Number(later[key]))]);
  return { ...earlier, ...later, ...Object.fromEntries(least) };
}

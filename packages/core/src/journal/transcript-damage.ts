import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ParsedLines } from "@retinue/base/storage/read-lines.ts";

/** What of a transcript no longer exists, as far as the rest shows. */
export interface TranscriptDamage {
  /** Lines that are there and cannot be read. */
  readonly broken: number;
  /** Lines that others follow and that are not there; each may mean several. */
  readonly missing: number;
  /** The last line was cut off. */
  readonly torn: boolean;
}

export function findDamage({ values, broken, torn }: ParsedLines): TranscriptDamage {
  return { broken, missing: Math.max(0, countMissing(values) - broken - Number(torn)), torn };
}

/** What is wrong and what follows from it, for a person; undefined where nothing is wrong. */
export function describeDamage(
  name: string,
  { broken, missing, torn }: TranscriptDamage,
  consequence = "The conversation continues without the lost lines.",
): string | undefined {
  const parts = [
    ...(broken === 0 ? [] : [`${lines(broken)} cannot be read`]),
    ...(missing === 0 ? [] : [`at least ${lines(missing)} ${missing === 1 ? "is" : "are"} missing`]),
    ...(torn ? ["the last line was cut off"] : []),
  ];
  if (parts.length === 0) return undefined;
  return `The transcript ${name} is damaged: ${parts.join(", ")}. ${consequence}`;
}

function lines(count: number): string {
  return count === 1 ? "1 line" : `${count} lines`;
}

/** The first line of a file may follow one of another file, of which it is a copy. */
function countMissing(records: readonly JsonRecord[]): number {
  const known = new Set(records.map(({ uuid }) => uuid));
  const placed = records.filter(({ uuid }) => typeof uuid === "string").slice(1);
  const parents = new Set(placed.map(({ parentUuid }) => parentUuid));
  return [...parents].filter((parent) => typeof parent === "string" && !known.has(parent)).length;
}

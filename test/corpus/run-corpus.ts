import { dirname, join } from "node:path";
import { compareAgent } from "./compare-agent.ts";
import { compareHooks, compareMarketplace, comparePlugin, compareSettings } from "./compare-configuration.ts";
import { compareMcp } from "./compare-mcp.ts";
import { compareMemory } from "./compare-memory.ts";
import { compareSkill } from "./compare-skill.ts";
import type { CorpusEntry, CorpusManifest, Mismatch } from "./corpus-manifest.ts";

export interface CorpusResult {
  readonly entry: CorpusEntry;
  readonly mismatches: readonly Mismatch[];
}

export interface CorpusReport {
  readonly results: readonly CorpusResult[];
  readonly matching: number;
  readonly kinds: ReadonlyMap<string, { matching: number; total: number }>;
  /** Kinds that no comparer is built for yet. */
  readonly skipped: ReadonlyMap<string, number>;
}

type Comparer = (entry: CorpusEntry, text: string) => Mismatch[];

const comparers: ReadonlyMap<string, Comparer> = new Map([
  ["agent", compareAgent],
  ["settings", compareSettings],
  ["hooks", compareHooks],
  ["plugin", comparePlugin],
  ["marketplace", compareMarketplace],
  ["skill", compareSkill],
  ["memory", compareMemory],
  ["mcp", compareMcp],
]);

/** Reads every file of a manifest with the comparer of its kind. */
export function runCorpus(manifestFile: string, read: (file: string) => string): CorpusReport {
  // The manifest is our own test data; its shape is checked by using it.
  const manifest = JSON.parse(read(manifestFile)) as CorpusManifest;
  const results: CorpusResult[] = [];
  const kinds = new Map<string, { matching: number; total: number }>();
  const skipped = new Map<string, number>();
  for (const entry of manifest.files) {
    const compare = comparers.get(entry.kind);
    if (compare === undefined) {
      skipped.set(entry.kind, (skipped.get(entry.kind) ?? 0) + 1);
      continue;
    }
    const mismatches = compareFile(entry, compare, () => read(join(dirname(manifestFile), entry.file)));
    results.push({ entry, mismatches });
    const kind = kinds.get(entry.kind) ?? { matching: 0, total: 0 };
    kind.total += 1;
    kind.matching += mismatches.length === 0 ? 1 : 0;
    kinds.set(entry.kind, kind);
  }
  const matching = results.filter((result) => result.mismatches.length === 0).length;
  return { results, matching, kinds, skipped };
}

/** A file that is not there, or a reader that throws, is a mismatch like any other: the rest is still compared. */
function compareFile(entry: CorpusEntry, compare: Comparer, read: () => string): readonly Mismatch[] {
  try {
    return compare(entry, read());
  } catch (error) {
    return [
      { field: "file", expected: "readable", actual: error instanceof Error ? error.message : String(error) },
    ];
  }
}

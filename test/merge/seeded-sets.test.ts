import { expect, test } from "vitest";
import { createMergeStage } from "./merge-stage.ts";
import { blockCheck, keepsBothSides, seededBase, seededChanges } from "./seeded-set.ts";

/** What a set of eight parallel changes came to. */
async function mergeSet(seed: number) {
  const stage = await createMergeStage(seededBase(), { steps: [keepsBothSides] });
  const changes = seededChanges(seed);
  const children = await Promise.all(changes.map(({ task, files }) => stage.child(task, files)));
  const queue = await stage.session.merge({ checks: blockCheck }).result;
  const isIn = new Set(queue.entries.flatMap(({ agent, state }) => (state === "integrated" ? [agent] : [])));
  const result = stage.git("grep", "-h", "", queue.into, "--", "src");
  const kept = changes.filter((_, at) => isIn.has(children[at]?.id ?? ""));
  const commits = stage.git("rev-list", `main..${queue.into}`).split("\n");
  const count = (commit: string, pattern: string): string =>
    stage
      .git("grep", "-hE", "-e", pattern, "-e", "^src/file 0 ü.txt 0$", commit, "--", "src")
      .split("\n")
      .length.toString();
  return {
    integrated: isIn.size,
    resolved: queue.entries.filter(({ resolver }) => resolver !== undefined).length,
    commits: commits.length,
    // A line that is missing, or there twice.
    lost: kept.flatMap(({ lines }) =>
      lines.filter((line) => result.split("\n").filter((one) => one === line).length !== 1),
    ),
    red: commits.filter(
      (commit) => count(commit, "^BEGIN") !== count(commit, "^END") || count(commit, "^<<<<<<<") !== "1",
    ),
  };
}

/** MERGE_SETS=20 for the long run. */
const sets = Number(process.env["MERGE_SETS"] ?? 3);

test("seeded sets of eight parallel changes, half of them overlapping, lose nothing and are green at every commit [MRG-1]", async () => {
  let integrated = 0;
  let resolved = 0;
  for (let seed = 0; seed < sets; seed += 1) {
    const set = await mergeSet(seed);
    expect(set).toMatchObject({ lost: [], red: [], commits: set.integrated });
    integrated += set.integrated;
    resolved += set.resolved;
  }
  expect(integrated).toBeGreaterThanOrEqual(sets * 8 * 0.9);
  // Without conflicts it would prove little.
  expect(resolved).toBeGreaterThan(sets);
}, 900_000);

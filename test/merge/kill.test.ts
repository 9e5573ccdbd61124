import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createMergeStage, type MergeStage } from "./merge-stage.ts";
import { createRandom, type SeededChange, seededBase, seededChanges } from "./seeded-set.ts";

/** How often merges are killed, in all; MERGE_KILLS=50 for the long run. */
const kills = Number(process.env["MERGE_KILLS"] ?? 6);

/** More than a merge of these starts. */
const maxStarts = 260;

async function runMerge(stage: MergeStage, killAt: number) {
  const { project, sample, session } = stage;
  const words = [
    ...["--import", join(projectRoot, "test/merge/kill-at.mjs")],
    ...[join(projectRoot, "test/merge/merge-program.ts"), project, sample.home, session.id],
  ];
  const child = spawn(process.execPath, words, {
    cwd: projectRoot,
    env: { ...process.env, KILL_AT: String(killAt) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    written.err += text;
  });
  const [code, signal] = await once(child, "close");
  return { code, signal, ...written };
}

/** What holds at every moment: nothing is lost, and what is integrated is whole. */
function expectSound(stage: MergeStage, changes: readonly SeededChange[], branches: readonly string[]): void {
  const there = new Set(stage.git("branch", "--format=%(refname:short)").split("\n"));
  const main = stage.git("grep", "-h", "", "main", "--", "src").split("\n");
  for (const [at, { lines }] of changes.entries())
    expect(there.has(branches[at] ?? "") || lines.every((line) => main.includes(line))).toBe(true);
  for (const branch of [...there].filter(
    (name) => name === "main" || name.startsWith("retinue/integration-"),
  )) {
    const text = stage.git("grep", "-h", "", branch, "--", "src").split("\n");
    const count = (start: string) => text.filter((line) => line.startsWith(start)).length;
    expect([count("BEGIN"), count("<<<<<<<")]).toEqual([count("END"), 0]);
  }
}

test("a merge that is killed at any point is continued by the next one, and nothing is lost [MRG-1]", async () => {
  let killed = 0;
  for (let seed = Number(process.env["MERGE_SEED"] ?? 100); killed < kills; seed += 1) {
    const random = createRandom(seed);
    const stage = await createMergeStage(seededBase());
    const changes = seededChanges(seed).slice(2, 7);
    const children = await Promise.all(changes.map(({ task, files }) => stage.child(task, files)));
    const branches = children.map(({ branch }) => branch);
    await stage.session.close();
    let isDone = false;
    while (!isDone) {
      const killAt = killed < kills ? 1 + Math.floor(random() * maxStarts) : 0;
      const { code, signal, out, err } = await runMerge(stage, killAt);
      expectSound(stage, changes, branches);
      if (signal === "SIGKILL") killed += 1;
      else {
        expect(code, `killed at ${killAt}, seed ${seed}: ${err}`).toBe(0);
        // Nothing is left to do where the last one came to its end but for that.
        expect(["merged", "nothing"], out).toContain(JSON.parse(out).status);
        isDone = true;
      }
    }
    const result = stage.git("grep", "-h", "", "main", "--", "src").split("\n");
    for (const { lines } of changes)
      for (const line of lines) expect(result.filter((one) => one === line)).toEqual([line]);
    expect(stage.git("status", "--short")).toBe("");
    expect(stage.git("branch", "--format=%(refname:short)")).toBe("main");
    expect(readdirSync(join(stage.project, ".claude/worktrees"))).toEqual([]);
    expect(existsSync(join(stage.project, ".git/retinue-merge.lock"))).toBe(false);
  }
}, 3_600_000);

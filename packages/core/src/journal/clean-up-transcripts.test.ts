import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openAppendLog } from "@retinue/base/storage/append-log.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cleanUpTranscripts } from "./clean-up-transcripts.ts";

const now = Date.UTC(2026, 5, 1);
const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

let root: string;
let projects: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "cleanup-"));
  projects = join(root, "projects");
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(path: string, days: number): Promise<string> {
  const file = join(projects, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, "{}\n");
  await age(file, days);
  return file;
}
const age = (file: string, days: number) =>
  utimes(file, now / 1000 - days * 86_400, now / 1000 - days * 86_400);
const clean = (options: object = {}) =>
  cleanUpTranscripts({ projects, cleanupPeriodDays: 30, now, ...options });
const left = async () =>
  (await readdir(projects, { recursive: true, withFileTypes: true }))
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(projects.length + 1))
    .sort();

describe("[TRN-6] old transcripts are removed", () => {
  it("a session not written to for the period goes with its children and long results; a newer one stays", async () => {
    await put(`-w/${id(1)}.jsonl`, 31);
    await put(`-w/${id(1)}/subagents/agent-a1.jsonl`, 31);
    await put(`-w/${id(1)}/subagents/agent-a1.meta.json`, 31);
    await put(`-w/${id(1)}/tool-results/x.txt`, 31);
    await put(`-w/${id(1)}/tasks/a1.output`, 31);
    await put(`-w/${id(1)}/control/a1.json`, 31);
    await put(`-w/${id(2)}.jsonl`, 29);
    const report = await clean();
    expect(report).toEqual({
      removed: [join(projects, "-w", `${id(1)}.jsonl`)],
      inUse: [],
      failed: [],
      isComplete: true,
    });
    expect(await left()).toEqual([`-w/${id(2)}.jsonl`]);
    expect(await readdir(join(projects, "-w"))).toEqual([`${id(2)}.jsonl`]);
  });

  it("a session whose child was written lately stays whole", async () => {
    await put(`-w/${id(1)}.jsonl`, 40);
    await put(`-w/${id(1)}/subagents/agent-a1.jsonl`, 2);
    expect((await clean()).removed).toEqual([]);
    expect(await left()).toHaveLength(2);
  });

  it("leftovers go as well: folders without a transcript, children of old versions, copies that were cut off, dead locks", async () => {
    await put(`-w/${id(1)}/subagents/agent-a1.jsonl`, 31);
    await put("-w/agent-1a2b3c4.jsonl", 31);
    await put(`-w/${id(2)}.jsonl.0123456789ab.tmp`, 31);
    await put(`-w/${id(3)}.jsonl.lock`, 31);
    await put("-w/agent-7654321.jsonl", 1);
    expect((await clean()).removed).toHaveLength(4);
    expect(await left()).toEqual(["-w/agent-7654321.jsonl"]);
  });

  it("a project's folder that is empty afterwards goes too", async () => {
    await put(`-w/${id(1)}.jsonl`, 31);
    await clean();
    expect(await readdir(projects)).toEqual([]);
  });

  it.each([
    [0, 1],
    [1, 0],
    [-1, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, 0],
  ])("a period of %s days removes %s of a file one hour old", async (cleanupPeriodDays, removed) => {
    await put(`-w/${id(1)}.jsonl`, 1 / 24);
    expect((await clean({ cleanupPeriodDays })).removed).toHaveLength(removed);
  });
});

describe("[TRN-6] what is in use or not ours is never removed", () => {
  it("a session that some process writes, or one of its children", async () => {
    const main = await put(`-w/${id(1)}.jsonl`, 90);
    await put(`-w/${id(2)}.jsonl`, 90);
    const child = await put(`-w/${id(2)}/subagents/agent-a1.jsonl`, 90);
    using _main = openAppendLog(main);
    using _child = openAppendLog(child);
    await Promise.all([age(main, 90), age(child, 90)]);
    for (const dryRun of [true, false]) {
      const { removed, inUse } = await clean({ dryRun });
      expect(removed).toEqual([]);
      expect([...inUse].sort()).toEqual([main, join(projects, "-w", `${id(2)}.jsonl`)]);
    }
    expect(await left()).toHaveLength(5);
  });

  it("files with other names, and what a person put beside or into a session", async () => {
    const others = [
      "-w/memory/MEMORY.md",
      "-w/notes.jsonl",
      "-w/agent-../x.jsonl",
      `-w/${id(1)}.jsonl.bak`,
      `-w/${id(1)}/notes.md`,
      "loose.jsonl",
    ];
    for (const path of others) await put(path, 90);
    await put(`-w/${id(1)}.jsonl`, 90);
    expect((await clean()).removed).toHaveLength(1);
    expect(await left()).toEqual([...others].map((path) => join(path)).sort());
  });

  it("what links lead to", async () => {
    const outside = join(root, "outside");
    await mkdir(join(outside, "subagents"), { recursive: true });
    await writeFile(join(outside, "subagents", "precious"), "");
    await writeFile(join(outside, `${id(3)}.jsonl`), "");
    await Promise.all([
      age(join(outside, "subagents", "precious"), 90),
      age(join(outside, `${id(3)}.jsonl`), 90),
    ]);
    await put(`-w/${id(1)}.jsonl`, 90);
    await symlink(outside, join(projects, "-w", id(1)));
    await symlink(join(outside, `${id(3)}.jsonl`), join(projects, "-w", `${id(2)}.jsonl`));
    await symlink(outside, join(projects, "-linked"));
    expect((await clean()).removed).toEqual([]);
    expect((await readdir(outside, { recursive: true })).sort()).toEqual([
      `${id(3)}.jsonl`,
      "subagents",
      join("subagents", "precious"),
    ]);
  });
});

describe("the work is bounded", () => {
  it("a dry run shows the same and touches nothing", async () => {
    await put(`-w/${id(1)}.jsonl`, 31);
    const { removed } = await clean({ dryRun: true });
    expect(removed).toHaveLength(1);
    expect(await left()).toEqual([`-w/${id(1)}.jsonl`]);
  });

  it("the limit and the signal end it early, which is reported", async () => {
    await put(`-w/${id(1)}.jsonl`, 31);
    await put(`-w/${id(2)}.jsonl`, 31);
    expect(await clean({ signal: AbortSignal.abort() })).toMatchObject({ removed: [], isComplete: false });
    expect((await clean({ limit: 1 })).removed).toHaveLength(1);
    expect(await clean({ limit: 2 })).toMatchObject({ isComplete: true });
    expect(await left()).toEqual([]);
  });

  it("no projects at all is fine", async () => {
    expect(await clean()).toMatchObject({ removed: [], isComplete: true });
  });
});

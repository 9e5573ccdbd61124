import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { describe, expect, test } from "vitest";
import { createPlace, type Place, runInProcess } from "./run-command.ts";

const dayMs = 24 * 60 * 60 * 1000;
const old = "11111111-1111-4111-8111-111111111111";
const young = "22222222-2222-4222-8222-222222222222";

function folderOf({ home, cwd }: Place): string {
  return join(home, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"));
}

/** A session with a child, both as old as said. */
function leaveSession(place: Place, id: string, days: number): string {
  const folder = folderOf(place);
  const files = [
    join(folder, `${id}.jsonl`),
    join(folder, id, "subagents", "agent-a1.jsonl"),
    join(folder, id, "tasks", "a1.output"),
  ];
  const time = new Date(Date.now() - days * dayMs);
  for (const file of files) {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "{}\n");
    utimesSync(file, time, time);
  }
  return files[0] ?? "";
}

function leaveTeam({ home }: Place, days: number): string {
  const folder = join(home, ".claude/teams/squad");
  const file = join(folder, "config.json");
  const time = new Date(Date.now() - days * dayMs);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, JSON.stringify({ name: "squad", leadSessionId: old, members: [] }));
  utimesSync(file, time, time);
  return folder;
}

describe("[TRN-6] retinue clean", () => {
  test("a dry run shows what would go and leaves everything", async () => {
    const place = createPlace();
    const file = leaveSession(place, old, 40);
    leaveSession(place, young, 2);
    const { code, out } = await runInProcess(place, ["clean", "--dry-run"]);
    expect(code).toBe(0);
    expect(out).toContain(`would remove  ~${file.slice(place.home.length)}`);
    expect(out).not.toContain(young);
    expect(existsSync(file)).toBe(true);
    expect(readdirSync(folderOf(place)).filter((name) => name.endsWith(".lock"))).toEqual([]);
  });

  test("what is old goes with its children's files, what is young or in use stays", async () => {
    const place = createPlace();
    const file = leaveSession(place, old, 40);
    const kept = leaveSession(place, young, 2);
    const used = leaveSession(place, "33333333-3333-4333-8333-333333333333", 90);
    const answer = takeOwnerLock(used);
    const team = leaveTeam(place, 40);
    const { code, out } = await runInProcess(place, ["clean", "--json"]);
    if (answer.type === "taken") answer.lock.release();
    expect(code).toBe(0);
    expect(JSON.parse(out).sessions).toMatchObject({ removed: [file], inUse: [used], isComplete: true });
    expect(JSON.parse(out).teams).toEqual({ removed: [team], inUse: [], failed: [] });
    expect(existsSync(team)).toBe(false);
    expect(existsSync(join(folderOf(place), old))).toBe(false);
    expect([existsSync(kept), existsSync(used)]).toEqual([true, true]);
  });

  test("--days says how old, and a value that is no number is refused", async () => {
    const place = createPlace();
    const file = leaveSession(place, young, 2);
    const refused = await runInProcess(place, ["clean", "--days", "soon"]);
    expect(refused.code).toBe(2);
    expect(refused.err).toContain('--days needs a number of days from 0, and it is "soon".');
    await runInProcess(place, ["clean", "--days", "1"]);
    expect(existsSync(file)).toBe(false);
  });

  test("worktrees of others are not even listed", async () => {
    const place = createPlace();
    const git = (...words: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
        cwd: place.cwd,
        stdio: "pipe",
      });
    git("init", "-q");
    git("commit", "-q", "--allow-empty", "-m", "one");
    git("worktree", "add", "-q", "../other");
    const { code, out } = await runInProcess(place, ["clean", "--days", "0"]);
    expect({ code, out }).toEqual({ code: 0, out: "Nothing is old enough to go.\n" });
    expect(existsSync(join(place.cwd, "../other/.git"))).toBe(true);
  });

  test("[MEM-1] locks of memories go when their process is gone, and stay while it runs", async () => {
    const place = createPlace();
    const folder = join(place.cwd, ".claude/agent-memory/.locks");
    mkdirSync(folder, { recursive: true });
    const [dead, live] = ["a", "b"].map((letter) => join(folder, letter.repeat(32))) as [string, string];
    // Numbers of processes end far below this one.
    writeFileSync(`${dead}.lock`, JSON.stringify({ ...thisProcess(), pid: 2 ** 30 }));
    const lock = takeOwnerLock(live);
    const reported = await runInProcess(place, ["clean", "--dry-run"]);
    expect(reported.out).toContain(`would remove  ${relative(place.cwd, dead)}.lock`);
    expect(reported.out).not.toContain(relative(place.cwd, live));
    const { out } = await runInProcess(place, ["clean", "--json"]);
    if (lock.type === "taken") lock.lock.release();
    expect(JSON.parse(out).locks).toEqual([`${dead}.lock`]);
    expect(existsSync(`${dead}.lock`)).toBe(false);
  });
});

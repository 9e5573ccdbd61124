import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { expect, onTestFinished, test } from "vitest";
import { cleanUpTeams } from "./clean-up-teams.ts";

const dayMs = 24 * 60 * 60 * 1000;
const now = Date.now();

function place() {
  const root = mkdtempSync(join(tmpdir(), "retinue-clean-teams-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  const places = { teams: join(root, "teams"), tasks: join(root, "tasks"), projects: join(root, "projects") };
  const write = (file: string, days: number, value: unknown = {}): string => {
    const time = new Date(now - days * dayMs);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, JSON.stringify(value));
    utimesSync(file, time, time);
    return file;
  };
  return {
    ...places,
    write,
    team(name: string, days: number, config: object = {}) {
      const leadSessionId = "11111111-1111-4111-8111-111111111111";
      write(join(places.teams, name, "config.json"), days, { name, leadSessionId, members: [], ...config });
      write(join(places.teams, name, "inboxes/team-lead.json"), days, []);
      return join(places.teams, name);
    },
    clean: (dryRun = false) =>
      cleanUpTeams({
        ...places,
        olderThanDays: 30,
        now,
        dryRun,
        signal: new AbortController().signal,
      }),
  };
}

test("teams and lists of tasks go when they were not touched for longer than the period [TRN-6, TEA-2]", async () => {
  const stage = place();
  const old = stage.team("old", 40);
  const young = stage.team("young", 3);
  const busy = stage.team("busy", 40, { taskList: "shared" });
  stage.write(join(stage.tasks, "old", "1.json"), 40);
  stage.write(join(stage.tasks, "young", "1.json"), 40);
  stage.write(join(stage.tasks, "shared", "1.json"), 1);
  const orphan = stage.write(join(stage.tasks, "orphan", "1.json"), 40);
  const { removed } = await stage.clean(true);
  expect(removed.toSorted()).toEqual([join(orphan, ".."), join(stage.tasks, "old"), old].toSorted());
  expect(existsSync(old)).toBe(true);
  expect(await stage.clean()).toMatchObject({ inUse: [], failed: [] });
  expect(readdirSync(stage.teams).toSorted()).toEqual(["busy", "young"]);
  // A team that is kept keeps its tasks, however old they are, and young tasks keep their team.
  expect(readdirSync(stage.tasks).toSorted()).toEqual(["shared", "young"]);
  expect([young, busy].every(existsSync)).toBe(true);
});

test("a team that a running process leads stays, however old it is [TRN-6, TEA-2]", async () => {
  const stage = place();
  const led = stage.team("led", 90);
  const transcript = stage.write(join(stage.projects, "p/11111111-1111-4111-8111-111111111111.jsonl"), 90);
  const answer = takeOwnerLock(transcript);
  expect(await stage.clean()).toEqual({ removed: [], inUse: [led], failed: [] });
  if (answer.type === "taken") answer.lock.release();
  expect(await stage.clean()).toMatchObject({ removed: [led] });
});

test("a team whose config cannot be read goes by its age, [TRN-6]", async () => {
  const stage = place();
  const broken = stage.team("broken", 40);
  stage.write(join(broken, "config.json"), 40, "nothing");
  expect(await stage.clean()).toMatchObject({ removed: [broken], failed: [] });
});

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnGuarded } from "../../../src/foundation/spawn-process.ts";
import { openTeamStore } from "../../../src/teams/team-store.ts";
import { projectRoot } from "../../project-files.ts";
import type { TortureMode } from "./torture-mode.ts";

const memberCount = 4;
const taskCount = 40;

/**
 * Four members in processes, 40 tasks of which each waits for two others, and random kill -9 of members. Every round a member
 * is killed; its tasks are given back and it is started again. At the end every task is completed, none is reported twice, and
 * the mail is in order.
 */
export const run: TortureMode = async ({ rounds = 100, random, say }) => {
  const totals = { kills: 0, teams: 0, released: 0 };
  let hasHeld = true;
  while (totals.kills < rounds) {
    const root = mkdtempSync(join(tmpdir(), "torture-team-"));
    try {
      const flaw = await torturedTeam(root, { random, totals, rounds });
      if (flaw !== undefined) {
        say(`FAILED: ${flaw} (${root})`);
        hasHeld = false;
      }
      totals.teams += 1;
    } finally {
      if (hasHeld) rmSync(root, { recursive: true, force: true, maxRetries: 3 });
    }
  }
  say(`${totals.kills} kills, ${totals.released} tasks given back, ${totals.teams} teams finished whole.`);
  return hasHeld;
};

interface Totals {
  kills: number;
  teams: number;
  released: number;
}

async function torturedTeam(
  root: string,
  {
    random,
    totals,
    rounds,
  }: { readonly random: () => number; readonly totals: Totals; readonly rounds: number },
): Promise<string | undefined> {
  const places = { teams: join(root, "teams"), tasks: join(root, "tasks") };
  mkdirSync(places.teams, { recursive: true });
  const store = openTeamStore(places, "squad");
  for (let id = 1; id <= taskCount; id += 1) {
    const blockedBy = id <= 4 ? [] : [String(id - 4), String(id - 3)];
    await store.board.create({ subject: `task ${id}`, description: "", blockedBy });
  }
  const isDone = (): boolean =>
    [...store.board.read().values()].every(({ status }) => status === "completed");
  const program = join(projectRoot, "test/torture/team-worker.ts");
  const members = Array.from({ length: memberCount }, async (_, index) => {
    const name = `m${index}`;
    while (!isDone()) {
      const child = spawnGuarded(process.execPath, [program, "work", places.teams, places.tasks, name, "0"], {
        stdio: "ignore",
      });
      const mayKill = totals.kills < rounds;
      const timer = mayKill ? setTimeout(() => child.kill("SIGKILL"), 200 + random() * 2500) : undefined;
      const killed = await new Promise<boolean>((resolve) =>
        child.on("close", (_code, signal) => resolve(signal !== null)),
      );
      clearTimeout(timer);
      if (!killed) continue;
      totals.kills += 1;
      totals.released += (await store.board.release(name)).length;
    }
  });
  await Promise.all(members);
  return findFlaw(store);
}

function findFlaw(store: ReturnType<typeof openTeamStore>): string | undefined {
  const { mail, invalid } = store.inbox("team-lead");
  if (invalid.length > 0) return `${invalid.length} entries are no mail`;
  const done = mail.map(({ text }) => text.replace(/ by .*/, ""));
  const twice = done.find((text, index) => done.indexOf(text) !== index);
  if (twice !== undefined) return `${twice} was reported twice`;
  const times = mail.map(({ timestamp }) => Date.parse(timestamp));
  const isOrdered = times.every((time, index) => index === 0 || time >= (times[index - 1] ?? 0));
  return isOrdered ? undefined : "mail is out of order";
}

/**
 * `node team-worker.ts WORK TEAMS TASKS NAME COUNT`: one member of a team in a process of its own. `claim` claims tasks until
 * none is left and prints each that it holds; `send` puts so many messages into the inbox of `ada`.
 */
import { claimableTasks } from "@retinue/core/teams/board.ts";
import { openTeamStore } from "@retinue/core/teams/team-store.ts";

const [work, teams = "", tasks = "", name = "", count = "0"] = process.argv.slice(2);
const store = openTeamStore({ teams, tasks }, "squad");
const by = { name, isLead: false };

if (work === "send")
  for (let number = 0; number < Number(count); number += 1)
    await store.send("ada", { from: name, body: `${name} ${number}` });

while (work === "claim") {
  // Few to choose from, so that the processes meet.
  const free = claimableTasks(store.board.read()).slice(0, 4);
  const next = free[Math.floor(Math.random() * free.length)];
  if (next === undefined) break;
  const claimed = await store.board.change(next.id, { status: "in_progress" }, { by });
  if (claimed.type === "changed") console.log(next.id);
}

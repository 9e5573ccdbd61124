// A lead and two teammates that share a board of tasks. Each keeps its context and reports by message.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";

type Request = { readonly system: readonly string[]; readonly messages: readonly unknown[] };
const is = (name: string) => (request: Request) =>
  request.system.join().includes(`You are "${name}", a teammate`);
const update = (taskId: string, status: string) => ({ name: "TaskUpdate", input: { taskId, status } });
const report = (message: string) => ({ name: "SendMessage", input: { to: "team-lead", message } });

const model = createScriptedModel([
  { match: is("ada"), calls: [update("1", "in_progress")] },
  { match: is("ada"), calls: [update("1", "completed"), report("Balances are sums of bookings.")] },
  { match: is("ada"), text: "Done.", times: "any" },
  { match: is("bob"), calls: [update("2", "in_progress")] },
  { match: is("bob"), calls: [update("2", "completed"), report("One test covers them.")] },
  { match: is("bob"), text: "Done.", times: "any" },
  {
    calls: [
      { name: "TaskCreate", input: { subject: "read the sources", description: "Below src." } },
      { name: "TaskCreate", input: { subject: "read the tests", description: "Below tests." } },
    ],
  },
  {
    calls: ["ada", "bob"].map((name) => ({
      name: "Agent",
      input: {
        description: `${name} reads`,
        prompt: "Claim a task and do it.",
        name,
        subagent_type: "Explore",
      },
    })),
  },
  { text: "Balances are sums of bookings, and one test covers them.", times: "any" },
]);

const home = mkdtempSync(join(tmpdir(), "team-"));
const cwd = fileURLToPath(new URL("workspace", import.meta.url));
const runtime = createRuntime({ cwd, home, model, teams: true });
const session = await runtime.open();

const run = session.run("What does this project do, and is it tested?");
console.log((await run.result).text);
for (const { team, turns } of session.tasks.list())
  console.log(team?.member, team?.isIdle ? "idle" : "working", turns > 0);
await runtime.close();
rmSync(home, { recursive: true });

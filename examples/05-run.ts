// Runs an agent and watches it. The model is a script, so that this needs no key; leave `model` out to ask a real one.
import { fileURLToPath } from "node:url";
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";

const model = createScriptedModel([
  { text: "I look for agents.", calls: [{ name: "Glob", input: { pattern: ".claude/agents/*.md" } }] },
  { calls: [{ name: "Bash", input: { command: "rm -rf .claude" } }] },
  "There are five agents. I was not allowed to remove them.",
]);

// The home directory named here does not exist, so no personal settings count.
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const runtime = createRuntime({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  model,
});

const run = runtime.run("How many agents are there?");
for await (const event of run.events) {
  if (event.type === "call-started") console.log("calls", event.call.name);
  if (event.type === "call-finished" && event.denied !== undefined) console.log("refused", event.call.name);
}

// Awaiting the same run gives its result: always an ending of one shape, never an error of a model or a tool.
const { status, text, totals, denials } = await run.result;
console.log(status, text);
console.log(`${totals.turns} turns, ${totals.toolUses} calls, ${denials.length} refused`);
await runtime.close();

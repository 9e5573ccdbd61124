// Prints an answer while it is written, then who did what: the events of a run are those of the agent and its children.
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";

const model = createScriptedModel([
  { match: "Count the chapters.", text: "There are three chapters." },
  {
    text: "I send someone.",
    calls: [{ name: "Agent", input: { description: "count", prompt: "Count the chapters." } }],
  },
  "The book has three chapters.",
]);

await using runtime = createRuntime({ model, tools: ["Agent", "Read"] });
const run = runtime.run("How long is the book?");
for await (const piece of run.textStream) process.stdout.write(piece);
console.log();
for await (const event of run.events)
  if (event.type === "run-ended") console.log(event.agentType ?? event.agentId, "ended:", event.ending.text);

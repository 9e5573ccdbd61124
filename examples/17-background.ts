// An agent starts a child in the background and answers; the child continues, and the next prompt finds its report.
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";

const search = { description: "search", prompt: "Search the archive.", run_in_background: true };
const model = createScriptedModel([
  { match: "Search the archive.", text: "Found 3 letters.", delayMs: 20 },
  { calls: [{ name: "Agent", input: search }] },
  "The search has begun.",
  "It found 3 letters.",
]);

await using runtime = createRuntime({ model, background: "leave" });
const session = await runtime.open();
console.log(await session.run("Start the search.").text);

const [child] = session.tasks.list();
console.log(child?.agentType, child?.status);
const ended = child && (await session.tasks.ended(child.id));
console.log(ended?.status, ended?.ending?.text);
console.log(await session.run("Well?").text);

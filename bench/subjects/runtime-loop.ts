/** A whole run as a program makes it: settings, agents, prompt, rules, tools, transcript and events. */
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";

await using runtime = createRuntime({ settingSources: ["user", "project", "local"], transcripts: true });
const starts: number[] = [];
const run = runtime.run(process.argv[2] ?? "", { model: "claude-sonnet-4-5" });
for await (const event of run.events) if (event.type === "turn-started") starts.push(performance.now());
const { text, error } = await run.result;
if (error !== undefined) throw new Error(error);
console.log(JSON.stringify({ text: text.slice(0, 100), starts }));

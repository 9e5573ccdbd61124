/** One long run of an agent that compacts its conversation again and again; says how long each turn took, and its heap. */
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";

const [prompt = "", early = "300"] = process.argv.slice(2);
await using runtime = createRuntime({ settingSources: ["user", "project", "local"], transcripts: true });
const starts: number[] = [];
const heaps: number[] = [];
let compactions = 0;
const run = runtime.run(prompt, { model: "claude-sonnet-4-5" });
for await (const event of run.events) {
  // Right after a compaction the conversation has its least size, so the heaps of two such moments can be compared.
  if (event.type === "context-compacted") {
    compactions += 1;
    if (starts.length >= Number(early)) heaps.push(heapMiB());
  }
  if (event.type === "turn-started") starts.push(performance.now());
}
const { text, error } = await run.result;
if (error !== undefined) throw new Error(error);
console.log(JSON.stringify({ text, starts, compactions, heaps: [heaps[0], heaps.at(-1)] }));

function heapMiB(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

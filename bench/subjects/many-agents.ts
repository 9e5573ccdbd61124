/** A thousand agents with a model that answers immediately, as workflow steps or as children of a program: time and heap. */
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { Model } from "@retinue/core/models/model.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";

const [way = "workflow", agents = "1000", atOnce = "16"] = process.argv.slice(2);
const count = Number(agents);
const usage = { inputTokens: 1000, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0 };
let calls = 0;
const heaps: number[] = [];
/** Like the scripted model of `retinue/testing`, but for its list of all requests, which would be most of the heap. */
const model: Model = {
  facts: createScriptedModel([]).facts,
  async *stream() {
    calls += 1;
    // The first ones load what is loaded once.
    if (calls === Math.floor(count / 5) || calls === count) heaps.push(heapMiB());
    const [id, text] = [`msg_${calls}`, `Answer ${calls}.`];
    const message = { role: "assistant", content: [{ type: "text", text }] } as const;
    yield { type: "message-started", id, model: "scripted", usage };
    yield { type: "block-started", index: 0, block: { type: "text", text: "" } };
    yield { type: "text-delta", index: 0, text };
    yield { type: "block-ended", index: 0, block: { type: "text", text } };
    yield { type: "message-ended", id, model: "scripted", message, stopReason: "end_turn", usage };
  },
};

await using runtime = createRuntime({
  model,
  transcripts: true,
  settings: { workflows: { agents: Number(atOnce) } },
});
const start = performance.now();
const cpu = process.cpuUsage();
const answers = way === "workflow" ? await runWorkflow() : await spawnAll();
const { user, system } = process.cpuUsage(cpu);
const wallMs = performance.now() - start;
if (answers.length !== count || !answers.every((text) => text.startsWith("Answer")))
  throw new Error(`${way} gave ${answers.length} answers: ${answers[0]}`);
console.log(JSON.stringify({ wallMs, cpuMs: (user + system) / 1000, heaps }));

async function runWorkflow(): Promise<readonly string[]> {
  const script = `export const meta = { name: 'many', description: 'Many agents' }
return await parallel(Array.from({ length: args }, (_, i) => () => agent('Say something about ' + i + '.', { label: 'step ' + i })))`;
  return (await runtime.workflow(script, count).result) as readonly string[];
}

/** As many concurrently as a workflow has. */
async function spawnAll(): Promise<readonly string[]> {
  const session = await runtime.open({ childrenOnly: true });
  const texts: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const at = next;
      next += 1;
      const { text } = await session.spawn("general-purpose", `Say something about ${at}.`).result;
      texts[at] = text;
    }
  };
  await Promise.all(Array.from({ length: Number(atOnce) }, worker));
  await session.close();
  return texts;
}

function heapMiB(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

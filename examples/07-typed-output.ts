// Asks for a value instead of a text. What the agent hands in is checked; a wrong value goes back to it with its flaws.
import { fileURLToPath } from "node:url";
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const Review = z.object({
  verdict: z.enum(["merge", "change", "reject"]),
  issues: z.array(z.object({ file: z.string(), line: z.number().int(), diagnostic: z.string() })),
});

const issue = { file: "src/cart.ts", line: 12, diagnostic: "The total is not rounded." };
const model = createScriptedModel([
  { calls: [{ name: "StructuredOutput", input: { verdict: "unsure", issues: [] } }] },
  { calls: [{ name: "StructuredOutput", input: { verdict: "change", issues: [issue] } }] },
]);

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const runtime = createRuntime({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  model,
});
const { output, totals } = await runtime.run("Review the last change.", {
  tools: ["Read", "Grep"],
  output: Review,
}).result;

// The type of `output` is that of the schema.
console.log(
  output?.verdict,
  output?.issues.map(({ file, line }) => `${file}:${line}`),
);
console.log(`after ${totals.turns} tries`);
await runtime.close();

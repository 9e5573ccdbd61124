// A conversation over two prompts, with a tool of this program and a person's word on each call that no rule allows.
import { fileURLToPath } from "node:url";
import { createRuntime, defineTool } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const stock = new Map([["apples", 7]]);

const order = defineTool({
  name: "order",
  description: "Orders more of an article.",
  effect: "network",
  input: z.object({ article: z.string(), count: z.number().int().positive() }),
  async call({ article, count }) {
    stock.set(article, (stock.get(article) ?? 0) + count);
    return { content: `Ordered ${count} ${article}; there are ${stock.get(article)} now.` };
  },
});

const model = createScriptedModel([
  { calls: [{ name: "order", input: { article: "apples", count: 500 } }] },
  "There are apples again.",
  { calls: [{ name: "order", input: { article: "gold", count: 1 } }] },
  "I may not order gold.",
]);

const runtime = createRuntime({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  model,
  tools: [order],
  async canUseTool(_tool, input) {
    if (input["article"] === "gold") return { behavior: "deny", message: "we do not trade in gold" };
    return { behavior: "allow", updatedInput: { ...input, count: Math.min(Number(input["count"]), 50) } };
  },
});

const session = await runtime.open({ tools: [], systemPrompt: "You run the stock of a shop." });
console.log((await session.prompt("We are short of apples.").result).text, stock.get("apples"));
const second = await session.prompt("And get some gold.").result;
console.log(second.text, second.denials[0]?.reason);
await session.close();
await runtime.close();

// A conversation over two prompts, with a tool of this program, which decides itself about each call.
import { createRuntime, defineTool } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const stock = new Map([["apples", 7]]);
const order = defineTool({
  name: "order",
  description: "Orders more of an article.",
  effect: "network",
  input: z.object({ article: z.string(), count: z.number().int().positive() }),
  call({ article, count }) {
    stock.set(article, (stock.get(article) ?? 0) + count);
    return `Ordered ${count} ${article}; there are ${stock.get(article)} now.`;
  },
});

const model = createScriptedModel([
  { calls: [{ name: "order", input: { article: "apples", count: 500 } }] },
  "There are apples again.",
  { calls: [{ name: "order", input: { article: "gold", count: 1 } }] },
  "I may not order gold.",
]);

await using runtime = createRuntime({
  model,
  tools: [order],
  systemPrompt: "You run the stock of a shop.",
  async canUseTool(_tool, input) {
    if (input["article"] === "gold") return { behavior: "deny", message: "we do not trade in gold" };
    return { behavior: "allow", updatedInput: { ...input, count: Math.min(Number(input["count"]), 50) } };
  },
});

const session = await runtime.open();
console.log(await session.run("We are short of apples.").text, stock.get("apples"));
const { text, denials } = await session.run("And get some gold.").result;
console.log(text, denials[0]?.reason);

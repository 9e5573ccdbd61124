// An MCP server inside the program, made with the official package, whose tools an agent uses like any others.
import { McpServer } from "@modelcontextprotocol/server";
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const prices = new Map([["apples", 3]]);
const shop = new McpServer({ name: "shop", version: "1.0.0" });
shop.registerTool(
  "price",
  { description: "The price of an article.", inputSchema: z.object({ article: z.string() }) },
  ({ article }) => ({ content: [{ type: "text", text: `${article}: ${prices.get(article) ?? "none"}` }] }),
);
const model = createScriptedModel([
  { calls: [{ name: "mcp__shop__price", input: { article: "apples" } }] },
  "Apples are 3.",
]);

// A rule for the server allows all its tools; `mcp__shop__price` would allow the one.
await using runtime = createRuntime({
  model,
  mcpServers: { shop: { type: "sdk", instance: shop } },
  allowedTools: ["mcp__shop"],
});
const session = await runtime.open();
for (const { name, status } of session.mcpServers()) console.log(name, status.type);

const run = session.run("What are apples?");
for await (const event of run.events)
  if (event.type === "call-finished") console.log(event.call.name, "gave", event.content);
console.log(await run.text);

// An MCP server inside the program, made with the official package, whose tools an agent uses like any others.
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/server";
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const prices = new Map([["apples", 3]]);

const shop = new McpServer({ name: "shop", version: "1.0.0" });
shop.registerTool(
  "price",
  { description: "The price of an article.", inputSchema: z.object({ article: z.string() }) },
  async ({ article }) => ({
    content: [{ type: "text", text: `${article}: ${prices.get(article) ?? "none"}` }],
  }),
);

const model = createScriptedModel([
  { calls: [{ name: "mcp__shop__price", input: { article: "apples" } }] },
  "Apples are 3.",
]);

const runtime = createRuntime({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  model,
  mcpServers: { shop: { type: "sdk", instance: shop } },
});

// A rule for the server allows all its tools; `mcp__shop__price` would allow the one.
const session = await runtime.open({ allowedTools: ["mcp__shop"] });
for (const { name, status } of session.mcpServers()) console.log(name, status.type);

const run = session.prompt("What are apples?");
for await (const event of run.events) {
  if (event.type === "call-finished") console.log(event.call.name, "gave", event.content);
}
console.log((await run.result).text);
await session.close();
await runtime.close();

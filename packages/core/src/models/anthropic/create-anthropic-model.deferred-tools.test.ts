import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Message } from "../../conversation/message.ts";
import type { ModelRequest, ToolSpecification } from "../model.ts";
import { createAnthropicModel } from "./create-anthropic-model.ts";
import { createRequestBuilder } from "./create-request-builder.ts";

const schema = { type: "object", properties: {} };
const search: ToolSpecification = {
  name: "ToolSearch",
  description: "finds",
  inputSchema: schema,
  loading: "searches",
};
const found: ToolSpecification = {
  name: "mcp__a__b",
  description: "does",
  inputSchema: schema,
  loading: "found",
};
const reference = { type: "tool_reference", tool_name: "mcp__a__b" } as const;
const gone = { type: "tool_reference", tool_name: "mcp__a__gone" } as const;
const note = { type: "text", text: "a hook says" } as const;

function after(...content: readonly (typeof reference | typeof gone | typeof note)[]): readonly Message[] {
  return [
    { role: "user", content: "hi" },
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "ToolSearch", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content }] },
  ];
}

const builder = createRequestBuilder({
  model: "claude-sonnet-5",
  contextWindow: 200_000,
  maxOutputTokens: 32_000,
  traits: { thinking: "none", efforts: [], forcedTool: true, serverTools: false },
});
const lastContent = (request: ModelRequest, defersTools: boolean) =>
  builder.build(request, { defersTools }).messages.at(-1)?.content;

test("references are alone in a result; what a hook adds and tools that are gone are words [MCP-5]", () => {
  const request = { system: [], tools: [search, found], messages: after(reference, gone, note) };
  expect(lastContent(request, true)).toMatchObject([
    { type: "tool_result", content: [reference] },
    { type: "text", text: "Loaded: mcp__a__gone" },
    { type: "text", text: "a hook says" },
  ]);
  expect(lastContent(request, false)).toMatchObject([
    {
      type: "tool_result",
      content: [{ text: "Loaded: mcp__a__b" }, { text: "Loaded: mcp__a__gone" }, { text: "a hook says" }],
    },
  ]);
});

test("a tool whose reference was compacted away is sent in full, and the last tool in full has the mark [MCP-5]", () => {
  const tools = [search, found];
  const hi: readonly Message[] = [{ role: "user", content: "hi" }];
  const compacted = builder.build({ system: [], tools, messages: hi }, { defersTools: true });
  expect(compacted.tools).toMatchObject([
    { name: "ToolSearch" },
    { name: "mcp__a__b", cache_control: { type: "ephemeral" } },
    { name: "deferred_tools", defer_loading: true },
  ]);
  expect(compacted.tools?.[1]).not.toHaveProperty("defer_loading");
  const { tools: sent = [] } = builder.build(
    { system: [], tools, messages: after(reference) },
    { defersTools: true },
  );
  expect(sent.map((tool) => ["cache_control" in tool, "defer_loading" in tool])).toEqual([
    [true, false],
    [false, true],
    [false, true],
  ]);
});

test("an endpoint that refuses is asked once, and gets the tools behind the others from then on [MCP-5]", async () => {
  const seen: { readonly beta: unknown; readonly text: string }[] = [];
  const server = createServer(async (incoming, response) => {
    let text = "";
    for await (const chunk of incoming) text += chunk;
    seen.push({ beta: incoming.headers["anthropic-beta"], text });
    if (text.includes("defer_loading")) {
      response.writeHead(400, { "content-type": "application/json" });
      const message = "tools.1.custom.defer_loading: Extra inputs are not permitted";
      response.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const events = [
      { type: "message_start", message: { id: "m", model: "claude-x", usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ok" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ];
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const model = createAnthropicModel({
    id: "claude-sonnet-5",
    apiKey: "key",
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    headers: { "anthropic-beta": "mine" },
    defersTools: true,
    timeouts: { firstTokenMs: 20_000, betweenTokensMs: 20_000 },
  });
  const ask = async (tools: readonly ToolSpecification[]) => {
    const types: string[] = [];
    const request = { system: [], tools, messages: after(reference) };
    for await (const { type } of model.stream(request, { signal: new AbortController().signal }))
      types.push(type);
    return types.at(-1);
  };
  expect(await ask([search, found])).toBe("message-ended");
  expect(await ask([search, found])).toBe("message-ended");
  expect(seen.map(({ beta }) => beta)).toEqual(["mine,advanced-tool-use-2025-11-20", "mine", "mine"]);
  expect(seen[1]?.text).toContain("Loaded: mcp__a__b");
});

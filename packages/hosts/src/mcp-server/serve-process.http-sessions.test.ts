import * as sdk from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";
import { createHttpSessions } from "./serve-process.ts";

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

function create(maxSessions = 2) {
  const clock = { now: 0 };
  const sessions = createHttpSessions({
    sdk,
    factory: () => new sdk.McpServer({ name: "x", version: "1" }, { capabilities: { tools: {} } }),
    now: () => clock.now,
    maxSessions,
    idleMs: 1000,
    onError: () => undefined,
  });
  const send = (body: unknown, id?: string, sent: Promise<void> = Promise.resolve()) =>
    sessions.answer(
      new Request("http://127.0.0.1:1/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...(id === undefined ? {} : { "mcp-session-id": id }),
        },
        body: JSON.stringify(body),
      }),
      sent,
    );
  const begin = async (): Promise<string> => (await send(initialize)).headers.get("mcp-session-id") ?? "";
  const ping = (id: string, sent?: Promise<void>) =>
    send({ jsonrpc: "2.0", id: 2, method: "ping" }, id, sent);
  return { sessions, clock, begin, send, ping };
}

describe("[MCP-3] sessions over HTTP", () => {
  test("an unused one ends after its time, one in use does not", async () => {
    const { sessions, clock, begin, ping } = create();
    const [idle, used] = [await begin(), await begin()];
    const streaming = Promise.withResolvers<void>();
    expect((await ping(used, streaming.promise)).status).toBe(200);
    clock.now = 999;
    sessions.sweep();
    expect(sessions.size).toBe(2);
    clock.now = 1000;
    sessions.sweep();
    expect((await ping(idle)).status).toBe(404);
    expect((await ping(used)).status).toBe(200);
    streaming.resolve();
  });

  test("one too many takes the place of the one that was used longest ago", async () => {
    const { sessions, clock, begin, ping } = create();
    const first = await begin();
    clock.now = 1;
    const second = await begin();
    clock.now = 2;
    await ping(first);
    const third = await begin();
    expect(sessions.size).toBe(2);
    expect(await Promise.all([first, second, third].map(async (id) => (await ping(id)).status))).toEqual([
      200, 404, 200,
    ]);
  });

  test("when all are in use, another one is refused", async () => {
    const { sessions, begin, send, ping } = create(1);
    const id = await begin();
    await ping(id, new Promise(() => undefined));
    expect((await send(initialize)).status).toBe(503);
    expect(sessions.size).toBe(1);
  });

  test("what does not begin properly leaves nothing", async () => {
    const { sessions, send } = create();
    expect((await send({ jsonrpc: "2.0", id: 1, method: "tools/list" })).status).toBe(400);
    expect(sessions.size).toBe(0);
  });
});

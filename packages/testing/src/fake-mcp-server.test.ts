import { connectServers } from "@retinue/core/mcp/connect-servers.ts";
import { expect, test } from "vitest";
import { createFakeMcpServer } from "./fake-mcp-server.ts";

test("[MCP-1] a fake server is connected in memory, and its tools are functions", async () => {
  const fake = createFakeMcpServer([
    { name: "double", call: ({ n }) => `${Number(n) * 2}` },
    { name: "break", annotations: { readOnlyHint: true }, call: () => Promise.reject(new Error("broken")) },
  ]);
  await using connections = connectServers([{ name: "fake", scope: "program", transport: { type: "sdk" } }], {
    environment: {},
    directory: "/",
    startLimitMs: 10_000,
    callLimitMs: 10_000,
    maxResultCharacters: 1_000,
    programServers: new Map([["fake", fake]]),
  });
  await connections.ready;
  const { signal } = new AbortController();
  expect(connections.tools().map(({ name, effect }) => [name, effect])).toEqual([
    ["mcp__fake__double", "execute"],
    ["mcp__fake__break", "read"],
  ]);
  expect(await connections.call("fake", "double", { n: 4 }, { signal })).toEqual({
    text: "8",
    isError: false,
  });
  expect(await connections.call("fake", "break", {}, { signal })).toEqual({
    text: "Error: broken",
    isError: true,
  });
  expect(await connections.call("fake", "none", {}, { signal })).toMatchObject({ isError: true });
  expect(fake.calls).toEqual([
    { tool: "double", input: { n: 4 } },
    { tool: "break", input: {} },
  ]);
});

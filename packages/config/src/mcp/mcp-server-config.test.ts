import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mcpDefinitionHash } from "./mcp-definition-hash.ts";
import { readMcpServers } from "./mcp-server-config.ts";

const read = (value: unknown) => {
  const { servers, issues } = readMcpServers(value);
  return { servers: servers ?? [], codes: issues.map(({ code }) => code), issues };
};
const one = (config: unknown) => read({ mcpServers: { s: config } }).servers[0];

const base = "$".concat("{BASE}/mcp");

describe("[MCP-1] a file with MCP servers", () => {
  test.each([
    [
      { command: "npx", args: ["-y", 1] },
      { type: "stdio", command: "npx", args: ["-y", "1"], env: {} },
    ],
    [
      { command: ["npx", "-y"], args: ["x"] },
      { type: "stdio", command: "npx", args: ["-y", "x"], env: {} },
    ],
    [{ command: "npx -y x@1 --port 80" }, { command: "npx", args: ["-y", "x@1", "--port", "80"] }],
    [{ command: "/opt/My App/server" }, { command: "/opt/My App/server", args: [] }],
    [
      { command: "npx -y", args: [] },
      { command: "npx -y", args: [] },
    ],
    [
      { type: "stdio", command: "x", env: { A: 1 }, cwd: "/w" },
      { env: { A: "1" }, cwd: "/w" },
    ],
    [{ url: "https://a.example/mcp" }, { type: "http", url: "https://a.example/mcp", headers: {} }],
    [{ type: "streamable-http", url: "https://a.example" }, { type: "http" }],
    [
      { type: "sse", url: "https://a.example", headers: { A: "b" } },
      { type: "sse", headers: { A: "b" } },
    ],
    [
      { transport: "sse", serverUrl: "https://a.example" },
      { type: "sse", url: "https://a.example" },
    ],
    [
      { url: base, headersHelper: "token" },
      { url: base, headersHelper: "token" },
    ],
  ])("reads %j", (config, transport) => {
    expect(one(config)).toMatchObject({ transport });
    expect(one(config)?.unusable).toBeUndefined();
  });

  test.each([
    [{}, undefined, /neither a command nor a URL/],
    [{ args: ["x"] }, undefined, /neither/],
    [{ type: "http", url: "" }, "http", /URL is missing/],
    [{ type: "stdio" }, "stdio", /command is missing/],
    [{ command: "" }, "stdio", /command is missing/],
    [{ command: "x", args: { a: 1 } }, "stdio", /list of strings/],
    [{ command: "x\0y" }, "stdio", /NUL/],
    [{ type: "ws", url: "wss://a.example" }, "ws", /WebSocket/],
    [{ url: "wss://a.example" }, "ws", /WebSocket/],
    [{ type: "carrier-pigeon", url: "https://a.example" }, undefined, /is not one of stdio, http and sse/],
    [{ url: "file:///etc/passwd" }, "http", /not an http/],
    [{ url: "not a url" }, "http", /not a URL/],
    ["npx", undefined, /must be an object/],
  ])("keeps %j as a server that cannot be used, and says why", (config, kind, why) => {
    const { servers, codes } = read({ mcpServers: { s: config } });
    expect(servers[0]).toMatchObject({ name: "s", unusable: expect.stringMatching(why) });
    expect(servers[0]?.kind).toBe(kind);
    expect(servers[0]?.transport).toBeUndefined();
    expect(codes).toContain("mcp-server-unusable");
  });

  test("takes a server that lives in another program without a word", () => {
    const { servers, codes } = read({ mcpServers: { s: { type: "sdk", name: "s" } } });
    expect([servers[0]?.kind, servers[0]?.transport, codes]).toEqual(["sdk", undefined, []]);
  });

  test("may be the inner mapping alone, with other keys beside it", () => {
    const { servers, codes } = read({ $schema: "x", remote: { type: "sse", url: "https://a.example" } });
    expect([servers.map(({ name, path }) => [name, path]), codes]).toEqual([[["remote", ["remote"]]], []]);
    expect(read({ servers: { a: { command: "x" } } }).servers.map(({ path }) => path)).toEqual([
      ["servers", "a"],
    ]);
    expect(read({ mcpServers: {} })).toMatchObject({ servers: [], codes: [] });
    expect(read({ other: 1 }).codes).toEqual(["mcp-no-servers"]);
  });

  test("is unreadable as a whole only where it is not a mapping", () => {
    for (const value of [null, [], "x", 3, { mcpServers: [] }])
      expect(readMcpServers(value)).toMatchObject({ servers: undefined, issues: [{ severity: "error" }] });
  });

  test("says where a bad field is, and continues without it", () => {
    const { servers, issues } = read({
      mcpServers: { s: { url: "https://a.example", timeout: "soon", headers: { A: "x\r\nB: y", C: "d" } } },
    });
    expect(servers[0]).toMatchObject({ transport: { headers: { C: "d" } } });
    expect(issues.map(({ path }) => path)).toEqual([
      ["mcpServers", "s", "headers", "A"],
      ["mcpServers", "s", "timeout"],
    ]);
  });

  test("can switch servers off and set their time", () => {
    expect(one({ command: "x", disabled: true, timeout: "5000", alwaysLoad: true })).toMatchObject({
      disabled: true,
      timeoutMs: 5000,
      alwaysLoad: true,
    });
    expect(one({ command: "x", enabled: false })?.disabled).toBe(true);
  });

  test("never makes the reader throw, and every server says whether it can be used", () => {
    const anything = fc.jsonValue({ maxDepth: 2 });
    const server = fc.record(
      {
        command: fc.oneof(fc.string(), fc.array(fc.string()), anything),
        args: anything,
        env: anything,
        url: fc.oneof(fc.webUrl(), fc.string(), anything),
        type: fc.oneof(fc.constantFrom("stdio", "http", "sse", "ws", "sdk"), anything),
        headers: anything,
        timeout: anything,
      },
      { requiredKeys: [] },
    );
    const file = fc.oneof(anything, fc.record({ mcpServers: fc.dictionary(fc.string(), server) }));
    fc.assert(
      fc.property(file, (value) => {
        const { servers } = readMcpServers(value);
        for (const { transport, unusable } of servers ?? [])
          expect(transport === undefined).toBe(unusable !== undefined);
      }),
    );
  });

  test("treats keys of every object's prototype as names like any other", () => {
    const value: unknown = JSON.parse(
      '{"mcpServers": {"__proto__": {"command": "x"}, "constructor": {"command": "y"}}}',
    );
    expect(read(value).servers.map(({ name }) => name)).toEqual(["__proto__", "constructor"]);
  });
});

describe("[MCP-1] the hash of a definition", () => {
  test("is the same in any order of keys, and another for every change", () => {
    const base = { command: "npx", args: ["a", "b"], env: { A: "1", B: "2" } };
    const hash = mcpDefinitionHash(base);
    expect(mcpDefinitionHash({ env: { B: "2", A: "1" }, args: ["a", "b"], command: "npx" })).toBe(hash);
    for (const changed of [
      { ...base, args: ["b", "a"] },
      { ...base, args: ["a,b"] },
      { ...base, env: { A: "1", B: "3" } },
      { ...base, cwd: "/" },
      { ...base, headersHelper: "x" },
    ])
      expect(mcpDefinitionHash(changed)).not.toBe(hash);
  });
});

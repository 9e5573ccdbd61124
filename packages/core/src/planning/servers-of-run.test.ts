import type { AgentMcpServer } from "@retinue/config/agents/agent-definition.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { grantTools } from "@retinue/config/tools/tool-grants.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import { narrowByServers, serversOfRun } from "./servers-of-run.ts";

const tool = (server: string, name: string): AvailableTool => ({
  name: `mcp__${server.replace(".", "_")}__${name}`,
  effect: "execute",
  origin: "mcp",
  server,
  mcp: { server: server.replace(".", "_"), tool: name },
});
const reading: AvailableTool = { name: "ReadMcpResourceTool", effect: "network", origin: "mcp" };
const available = [
  { name: "Read", effect: "read", origin: "builtin" } as const,
  tool("a", "one"),
  tool("a", "two"),
  tool("my.b", "one"),
  reading,
];
const servers = ["a", "my.b", "papers"].map((name) => ({ name, own: false }));
const reference = (name: string, tools?: readonly string[]): AgentMcpServer => ({
  type: "reference",
  name,
  tools,
});

interface Fields {
  readonly tools?: readonly string[];
  readonly disallowedTools?: readonly string[];
  readonly mcpServers?: readonly AgentMcpServer[];
}

function run(definition: Fields, denied: readonly string[] = []) {
  const deny = denied.map((text) => {
    const reading = parseRule(text, { list: "deny" });
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: "/p" };
  });
  const narrowed = narrowByServers(definition, available);
  const grant = grantTools({
    definition: narrowed.definition,
    available: narrowed.available,
    role: "subagent",
  });
  if (grant.type === "refused") throw new Error(grant.reason);
  const { mcpServers = [] } = serversOfRun({
    definition,
    servers,
    available: narrowed.available,
    granted: grant.tools,
    policy: { deny },
  });
  return {
    tools: grant.tools.map(({ name }) => name).filter((name) => name.startsWith("mcp__")),
    servers: mcpServers.map(({ name }) => name),
    notes: narrowed.notes,
  };
}

describe("[MCP-1] the servers of a definition", () => {
  const all = ["mcp__a__one", "mcp__a__two", "mcp__my_b__one"];

  test.each<[what: string, Fields, tools: readonly string[], servers: readonly string[]]>([
    ["nothing: everything there is", {}, all, ["a", "my.b", "papers"]],
    ["a list without servers: none of them", { tools: ["Read"] }, [], []],
    [
      "a list that reads resources alone: those of all servers",
      { tools: ["ReadMcpResourceTool"] },
      [],
      ["a", "my.b", "papers"],
    ],
    [
      "a list that names a server: its resources alone",
      { tools: ["mcp__my.b", "ReadMcpResourceTool"] },
      ["mcp__my_b__one"],
      ["my.b"],
    ],
    ["a server is taken away", { disallowedTools: ["mcp__a", "mcp__papers"] }, ["mcp__my_b__one"], ["my.b"]],
    [
      "some tools of a server",
      { mcpServers: [reference("a", ["two"])] },
      ["mcp__a__two", "mcp__my_b__one"],
      ["a", "my.b", "papers"],
    ],
    [
      "by the name that models see, or a pattern",
      { mcpServers: [reference("a", ["mcp__a__one"]), reference("my_b", ["o*"])] },
      ["mcp__a__one", "mcp__my_b__one"],
      ["a", "my.b", "papers"],
    ],
    ["no tool of a server", { mcpServers: [reference("a", [])] }, ["mcp__my_b__one"], ["my.b", "papers"]],
    [
      "a server beside a list that says nothing of it",
      { tools: ["Read"], mcpServers: [reference("a")] },
      ["mcp__a__one", "mcp__a__two"],
      ["a"],
    ],
    [
      "a server beside a list that names one tool of it",
      { tools: ["mcp__a__one"], mcpServers: [reference("a")] },
      ["mcp__a__one"],
      ["a"],
    ],
    [
      "the narrower of two entries for one server",
      { mcpServers: [reference("a"), reference("a", ["one"])] },
      ["mcp__a__one", "mcp__my_b__one"],
      ["a", "my.b", "papers"],
    ],
  ])("%s", (_, definition, tools, named) => {
    expect(run(definition)).toMatchObject({ tools, servers: named });
  });

  test("a tool that the server does not have is reported", () => {
    expect(run({ mcpServers: [reference("a", ["one", "nine"])] }).notes).toEqual([
      'The MCP server "a" has no tool "nine".',
    ]);
  });

  test("[TLS-4] nothing of a server that a rule denies is left, not even for reading", () => {
    expect(run({}, ["mcp__my.b", "mcp__papers__*"]).servers).toEqual(["a"]);
    expect(run({}, ["mcp__*"]).servers).toEqual([]);
  });
});

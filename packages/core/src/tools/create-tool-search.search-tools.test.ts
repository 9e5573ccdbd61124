import { describe, expect, test } from "vitest";
import { searchTools } from "./create-tool-search.ts";
import type { Tool } from "./tool.ts";

function tool(server: string, name: string, description: string, parameters: readonly string[] = []): Tool {
  return {
    name: `mcp__${server}__${name}`,
    description,
    effect: "execute",
    origin: "mcp",
    mcp: { server, tool: name, serverName: server, source: "user", hints: {} },
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(parameters.map((each) => [each, { type: "string" }])),
    },
    call: async () => ({ content: "" }),
  };
}

const tools = [
  tool("github", "create_issue", "Opens a new issue in a repository.", ["title", "body"]),
  tool("github", "list_issues", "Lists the issues of a repository.", ["state"]),
  tool("github", "mergePullRequest", "Merges a pull request.", ["number"]),
  tool("linear", "create_issue", "Opens an issue for a team.", ["teamId"]),
  tool("slack", "post_message", "Posts a message to a channel.", ["channel", "text"]),
];

function found(query: string, limit = 5): readonly string[] {
  return searchTools(tools, { query, limit }).map(({ name }) => name);
}

describe("[MCP-5] finding tools", () => {
  test.each([
    ["post a message", ["mcp__slack__post_message"]],
    ["merge pull request", ["mcp__github__mergePullRequest"]],
    ["+linear issue", ["mcp__linear__create_issue"]],
    ["channel", ["mcp__slack__post_message"]],
    ["MCP__GITHUB__LIST_ISSUES", ["mcp__github__list_issues"]],
    [
      "select:post_message,mcp__github__list_issues",
      ["mcp__slack__post_message", "mcp__github__list_issues"],
    ],
    ["select:nothing", []],
    ["+teleport issue", []],
    ["", []],
    ["constructor __proto__ .* (", []],
  ])("%s", (query, names) => {
    expect(found(query)).toEqual(names);
  });

  test("a tool's name counts more than its description, and no more are found than asked for", () => {
    expect(found("create issue")).toEqual([
      "mcp__github__create_issue",
      "mcp__linear__create_issue",
      "mcp__github__list_issues",
    ]);
    expect(found("create issue", 1)).toEqual(["mcp__github__create_issue"]);
    expect(found("select:create_issue", 1)).toHaveLength(2);
  });

  test("a query of a megabyte and five hundred tools take no time worth mentioning", () => {
    const many = Array.from({ length: 500 }, (_, at) => tool("s", `t${at}`, `Does ${at}.`, [`p${at}`]));
    expect(searchTools(many, { query: "t499 ".repeat(200), limit: 3 })[0]?.name).toBe("mcp__s__t499");
  });
});

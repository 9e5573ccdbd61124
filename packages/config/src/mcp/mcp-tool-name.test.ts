import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mcpIdentity, mcpServerPart, mcpToolName } from "./mcp-tool-name.ts";

describe("[MCP-1] the name of a server's tool", () => {
  test.each([
    ["github", "create_issue", "mcp__github__create_issue"],
    ["my server", "run", "mcp__my_server__run"],
    ["plugin:docs:search", "find", "mcp__plugin_docs_search__find"],
    ["a.b/c", "x.y z", "mcp__a_b_c__x_y_z"],
    ["Files (local)", "read", "mcp__Files_local__read"],
    ["acme", "_status", "mcp__acme___status"],
  ])("of %s and %s is %s", (server, tool, name) => {
    expect(mcpToolName(server, tool)).toBe(name);
  });

  test("of a server without a letter that fits is distinguished by a hash", () => {
    const names = [mcpServerPart("数据库"), mcpServerPart("地图")];
    expect(names).toEqual([expect.stringMatching(/^server_[0-9a-f]{8}$/), expect.stringMatching(/^server_/)]);
    expect(new Set(names).size).toBe(2);
  });

  test("keeps the server whole and its tools apart where it must be shortened", () => {
    const long = "a_tool_whose_name_goes_on_and_on_and_on_and_on_and_on";
    const [first, second] = [mcpToolName("warehouse", `${long}_1`), mcpToolName("warehouse", `${long}_2`)];
    expect(first).toMatch(/^mcp__warehouse__a_tool_\w+_[0-9a-f]{8}$/);
    expect(first).toHaveLength(64);
    expect(second).not.toBe(first);
    expect(mcpIdentity("warehouse", `${long}_1`)).toEqual({ server: "warehouse", tool: `${long}_1` });
  });

  test("is always one that providers take, and always the same", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.string({ minLength: 1, maxLength: 200 }),
        (server, tool) => {
          const name = mcpToolName(server, tool);
          expect(name).toMatch(/^mcp__[A-Za-z0-9_-]+$/);
          expect(name.length).toBeLessThanOrEqual(64);
          expect(mcpToolName(server, tool)).toBe(name);
        },
      ),
    );
  });
});

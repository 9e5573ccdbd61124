import { absentToolNames, toolAliases, toolTable } from "@retinue/base/foundation/tool-table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { builtinTools } from "./builtin-tools.ts";
import { resolveToolName, type ToolNameMeaning } from "./tool-entry.ts";

describe("resolveToolName [TLS-4]", () => {
  test.each<[string, ToolNameMeaning]>([
    ["Read", { type: "known", name: "Read" }],
    ["Task", { type: "renamed", name: "Agent", reason: "old-name" }],
    ["KillShell", { type: "renamed", name: "TaskStop", reason: "old-name" }],
    ["KillBash", { type: "renamed", name: "TaskStop", reason: "old-name" }],
    ["BashOutput", { type: "renamed", name: "TaskOutput", reason: "old-name" }],
    ["AgentOutputTool", { type: "renamed", name: "TaskOutput", reason: "old-name" }],
    ["MultiEdit", { type: "renamed", name: "Edit", reason: "old-name" }],
    ["LS", { type: "renamed", name: "Glob", reason: "old-name" }],
    ["NotebookRead", { type: "renamed", name: "Read", reason: "old-name" }],
    ["task", { type: "renamed", name: "Agent", reason: "old-name" }],
    ["read", { type: "renamed", name: "Read", reason: "letter-case" }],
    ["BASH", { type: "renamed", name: "Bash", reason: "letter-case" }],
    ["LSP", { type: "absent" }],
    ["CronCreate", { type: "absent" }],
    ["SlashCommand", { type: "absent" }],
    ["mcp__github", { type: "mcp", server: "github" }],
    ["mcp__github__*", { type: "mcp", server: "github" }],
    ["mcp__github__get_issue", { type: "mcp", server: "github", tool: "get_issue" }],
    ["mcp__plugin_a_b__search", { type: "mcp", server: "plugin_a_b", tool: "search" }],
    ["mcp__*", { type: "mcp" }],
    ["mcp__", { type: "unknown" }],
    ["Wirte", { type: "unknown", nearest: "Write" }],
    ["edit/editFiles", { type: "unknown" }],
    ["__proto__", { type: "unknown" }],
    ["constructor", { type: "unknown" }],
    ["", { type: "unknown" }],
  ])("%j is understood", (name, expected) => {
    expect(resolveToolName(name)).toEqual(expected);
  });

  test("no name is two things at the same time, and every old name leads to a tool that exists", () => {
    const names = new Set<string>(builtinTools.map((tool) => tool.name));
    expect(names.size).toBe(builtinTools.length);
    for (const [old, today] of toolAliases) {
      expect(names.has(old) || absentToolNames.has(old)).toBe(false);
      expect(names.has(today) || absentToolNames.has(today), today).toBe(true);
    }
    for (const absent of absentToolNames) expect(names.has(absent)).toBe(false);
    // `Cd`, `PowerShell` and `RunnerTool`, calls of other vendors' agents, have a grammar in rules, and no tool here.
    expect(toolTable.filter(({ name }) => !names.has(name)).map(({ name }) => name)).toEqual([
      "Cd",
      "PowerShell",
      "RunnerTool",
    ]);
  });

  test("any text is answered", () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(resolveToolName(name).type).toBeTypeOf("string");
        expect(resolveToolName(`mcp__${name}`).type).toMatch(/^(mcp|unknown)$/);
      }),
    );
  });
});

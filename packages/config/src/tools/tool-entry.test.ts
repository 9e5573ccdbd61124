import { describe, expect, test } from "vitest";
import { parseToolEntry, type ToolEntry } from "./tool-entry.ts";

describe("parseToolEntry [TLS-3]", () => {
  test.each<[string, ToolEntry]>([
    ["Bash", { type: "whole", name: "Bash" }],
    ["Bash(git diff *)", { type: "scoped", name: "Bash", specifier: "git diff *" }],
    ["Bash (git diff *) ", { type: "scoped", name: "Bash", specifier: "git diff *" }],
    ["Bash(echo (a))", { type: "scoped", name: "Bash", specifier: "echo (a)" }],
    ["Bash(*)", { type: "whole", name: "Bash" }],
    ["Bash()", { type: "whole", name: "Bash" }],
    ["*", { type: "whole", name: "*" }],
    ["Bash(rm *", { type: "malformed", name: "Bash" }],
    ["Bash(rm *) really", { type: "malformed", name: "Bash" }],
    ["Bash)", { type: "malformed", name: "Bash" }],
    ["Bash:*", { type: "malformed", name: "Bash" }],
    ["(rm *)", { type: "malformed", name: "" }],
    ["", { type: "malformed", name: "" }],
  ])("%j is read as a tool and its scope", (text, expected) => {
    expect(parseToolEntry(text)).toEqual(expected);
  });
});

import { expect, test } from "vitest";
import { rowText } from "../screen/row.ts";
import type { ToolResult } from "../session/terminal-session.ts";
import { finishedCallRows } from "./finished-call-rows.ts";
import { plainContext } from "./row-context.ts";

function rowsOf(command: string, result: Partial<ToolResult>, width = 60): readonly string[] {
  const call = { id: "1", tool: "Bash", input: { command } };
  const all: ToolResult = { text: "", isError: false, durationMs: 4_000, ...result };
  return finishedCallRows(call, all, plainContext(width)).map(rowText);
}

test("a long command leaves room for what came of it, and counts are never cut [CLI-4]", () => {
  const command = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.5; done";
  expect(rowsOf(command, { text: "line 1\nline 8\n" })).toEqual([
    "● Bash for i in 1 2 3 4 5 6 7 8; do…  line 8 · 2 lines · 4 s",
  ]);
  const [row = ""] = rowsOf(command, { text: `one\n${"long ".repeat(20)}` });
  expect(row.length).toBeLessThanOrEqual(60);
  expect(row).toMatch(/^● Bash for i in 1 2.*… {2}long long.*… · 2 lines · 4 s$/);
});

test("a command that fails shows the last lines of what it wrote [CLI-4]", () => {
  const text = "1\n2\nError: no such table\n  at cart.ts:3\n  at main.ts:1\nexit code 1";
  expect(rowsOf("npm test", { text, isError: true })).toEqual([
    "✗ Bash npm test",
    "  Error: no such table",
    "    at cart.ts:3",
    "    at main.ts:1",
    "  exit code 1",
  ]);
});

import { expect, test } from "vitest";
import { rowText } from "../screen/row.ts";
import type { Question } from "../session/terminal-session.ts";
import { answeredRow, unaskedRow } from "./answered-row.ts";

const context = { width: 60, fileName: (file: string) => file.replace("/home/me/shop/", "") };

test("an edit that was answered is shown by its file from the folder on [CLI-4]", () => {
  const file = "/home/me/shop/src/cart.ts";
  const question: Question = {
    kind: "permission",
    id: "1",
    path: ["main"],
    call: { id: "c", tool: "Edit", input: { file_path: file } },
    subject: file,
    diff: { path: file, hunks: [] },
    reason: "",
    rules: [],
    checkRule: () => undefined,
  };
  expect(rowText(answeredRow(question, { type: "allow" }, context))).toBe("✓ Edit src/cart.ts  you: yes");
  expect(rowText(answeredRow(question, { type: "deny", message: "use b" }, context))).toBe(
    "✗ Edit src/cart.ts  you: no, use b",
  );
});

test("a question whose agent was moved to the background leaves a line with its end [BGR-3, CLI-4]", () => {
  const question: Question = {
    kind: "permission",
    id: "1",
    path: ["main", "fixer"],
    call: { id: "c", tool: "Bash", input: { command: "npm test" } },
    subject: "npm test",
    reason: "",
    rules: [],
    checkRule: () => undefined,
  };
  expect(rowText(unaskedRow(question, { ...context, width: 90 }))).toBe(
    "✗ main › fixer Bash npm test  no: agents in the background cannot ask",
  );
});

test("a choice of the terminal itself is neither a yes nor a no [CLI-4]", () => {
  const question: Question = {
    kind: "form",
    id: "1",
    path: ["retinue"],
    isChoice: true,
    fields: [{ question: "Do you trust it?", header: "trust", options: [], multiple: false }],
  };
  const answers = { "Do you trust it?": "not now" };
  for (const answer of [{ type: "fields", answers } as const, { type: "deny" } as const])
    expect(rowText(answeredRow(question, answer, context))).toBe("· trust: not now");
});

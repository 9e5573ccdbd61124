import { expect, test } from "vitest";
import { rowText } from "../screen/row.ts";
import { subjectOf } from "../session/session-questions.ts";
import type { PermissionQuestion, QuestionAnswer } from "../session/terminal-session.ts";
import { guardMs, QuestionDesk } from "./question-desk.ts";

function openDesk() {
  const answers: [string, QuestionAnswer["type"]][] = [];
  const clock = { now: 0 };
  const desk = new QuestionDesk({
    now: () => clock.now,
    answer: (id, { type }) => void answers.push([id, type]),
    edit: async () => undefined,
    show: () => undefined,
  });
  const press = (name: string): void => {
    clock.now += guardMs;
    desk.press({ name, text: name });
  };
  return { desk, answers, press };
}

const write = (id: string, content: string): PermissionQuestion => {
  const input = { file_path: "a.txt", content };
  return {
    kind: "permission",
    id,
    path: [id],
    call: { id, tool: "Write", input },
    subject: subjectOf(input),
    diff: { path: "a.txt", hunks: [{ oldStart: 1, newStart: 1, lines: [`+${content}`] }] },
    reason: "no rule allows it",
    rules: ["Edit(a.txt)"],
    checkRule: () => undefined,
  };
};

test("only calls that would do the same are answered together [CLI-4]", () => {
  const { desk, answers, press } = openDesk();
  for (const [id, content] of [
    ["one", "safe"],
    ["two", "evil"],
    ["three", "safe"],
  ] as const)
    desk.ask(write(id, content));
  desk.open();
  expect(desk.view(80, 20).rows.map(rowText)[0]).toContain("2 agents ask the same");
  press("1");
  expect(answers).toEqual([
    ["one", "allow"],
    ["three", "allow"],
  ]);
  expect(desk.view(80, 20).rows.map(rowText).join("\n")).toContain("+ evil");
  press("3");
  expect(answers.at(-1)).toEqual(["two", "deny"]);
});

test("a question shows the file and every field of a call but its description [CLI-4]", () => {
  const { desk } = openDesk();
  desk.ask(write("one", "text"));
  desk.open();
  expect(desk.view(80, 20).rows.map(rowText).slice(0, 3)).toEqual([
    "▲ one asks to use Write",
    "    a.txt",
    "    1 + text",
  ]);
  expect(subjectOf({ query: "SELECT 1", database: "production", force: true, description: "looks" })).toBe(
    'SELECT 1\ndatabase: "production"\nforce: true',
  );
  expect(subjectOf({ command: "ls", description: "lists" })).toBe("ls");
  expect(subjectOf({ nothing: "known" })).toContain('"nothing": "known"');
});

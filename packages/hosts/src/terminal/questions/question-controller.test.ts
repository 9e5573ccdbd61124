import { expect, test } from "vitest";
import { rowText } from "../screen/row.ts";
import { subjectOf } from "../session/session-questions.ts";
import type { PermissionQuestion, QuestionAnswer } from "../session/terminal-session.ts";
import { guardMs, QuestionController } from "./question-controller.ts";

function openQuestionController() {
  const answers: [string, QuestionAnswer["type"]][] = [];
  const clock = { now: 0 };
  const questionController = new QuestionController({
    now: () => clock.now,
    answer: (id, { type }) => void answers.push([id, type]),
    edit: async () => undefined,
    show: () => undefined,
  });
  const press = (name: string): void => {
    clock.now += guardMs;
    questionController.press({ name, text: name });
  };
  return { questionController, answers, press };
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
  const { questionController, answers, press } = openQuestionController();
  for (const [id, content] of [
    ["one", "safe"],
    ["two", "evil"],
    ["three", "safe"],
  ] as const)
    questionController.ask(write(id, content));
  questionController.open();
  expect(questionController.view(80, 20).rows.map(rowText)[0]).toContain("2 agents ask the same");
  press("1");
  expect(answers).toEqual([
    ["one", "allow"],
    ["three", "allow"],
  ]);
  expect(questionController.view(80, 20).rows.map(rowText).join("\n")).toContain("+ evil");
  press("3");
  expect(answers.at(-1)).toEqual(["two", "deny"]);
});

test("a question shows the file and every field of a call but its description [CLI-4]", () => {
  const { questionController } = openQuestionController();
  questionController.ask(write("one", "text"));
  questionController.open();
  expect(questionController.view(80, 20).rows.map(rowText).slice(0, 3)).toEqual([
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

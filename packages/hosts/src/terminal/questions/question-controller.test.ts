import { expect, test } from "vitest";
import { rowText } from "../screen/row.ts";
import { subjectOf } from "../session/session-questions.ts";
import type { FormQuestion, PermissionQuestion, QuestionAnswer } from "../session/terminal-session.ts";
import { burstMs, guardMs, QuestionController, unaskedGuardMs } from "./question-controller.ts";

function openQuestionController() {
  const answers: [string, QuestionAnswer["type"]][] = [];
  const typed: string[] = [];
  const clock = { now: 0 };
  const timers = new Map<() => void, number>();
  const questionController = new QuestionController({
    now: () => clock.now,
    later(milliseconds, work) {
      timers.set(work, clock.now + milliseconds);
      return () => void timers.delete(work);
    },
    answer: ({ id }, { type }) => void answers.push([id, type]),
    typed: ({ name }) => void typed.push(name),
    changed: () => undefined,
    edit: async () => undefined,
    show: () => undefined,
  });
  const wait = (milliseconds: number): void => {
    clock.now += milliseconds;
    for (const [work, at] of timers)
      if (at <= clock.now) {
        timers.delete(work);
        work();
      }
  };
  /** What a keyboard sends: letters and digits type a text, other keys have a name alone. */
  const type = (...names: readonly string[]): void => {
    for (const name of names) {
      const key = name.length === 1 ? { name, text: name } : { name };
      if (!questionController.press(key)) typed.push(name);
      wait(10);
    }
  };
  const press = (name: string): void => {
    wait(guardMs);
    type(name);
  };
  /** A question has come, and has been on the screen for as long. */
  const show = (milliseconds: number): void => {
    questionController.openUnasked();
    questionController.view(80, 20);
    wait(milliseconds);
  };
  return { questionController, answers, typed, press, type, wait, show };
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
    reason: "no allow rule matches",
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

test("a question that comes while nothing is typed opens by itself and is answered by one key that stands alone [CLI-4]", () => {
  const { questionController, answers, typed, type, wait, show } = openQuestionController();
  questionController.ask(write("one", "text"));
  show(unaskedGuardMs);
  expect(questionController.isOpen).toBe(true);
  expect(questionController.hasFocus).toBe(false);
  type("1");
  expect(answers).toEqual([]);
  wait(burstMs);
  expect(answers).toEqual([["one", "allow"]]);
  expect(typed).toEqual([]);
});

test("typing never answers a question that opened by itself, and every key of it reaches the draft [CLI-4]", () => {
  for (const [shownFor, text] of [
    // Before it was on the screen for long enough.
    [unaskedGuardMs - 20, "1"],
    // A draft that begins like an answer.
    [unaskedGuardMs, "1 more"],
    [unaskedGuardMs, "4"],
    [unaskedGuardMs, "e2e"],
    [unaskedGuardMs, "view 2"],
    [10_000, "11"],
    [10_000, "yes"],
  ] as const) {
    const { questionController, answers, typed, type, wait, show } = openQuestionController();
    questionController.ask(write("one", "text"));
    show(shownFor);
    type(...text);
    wait(burstMs);
    if (text !== "4") {
      expect(typed.join(""), text).toBe(text);
      expect(questionController.isOpen, text).toBe(false);
    }
    expect(answers, text).toEqual([]);
    expect(questionController.count, text).toBe(1);
  }
});

test("an enter meant for a message, keys in a burst and keys before the question was painted answer nothing [CLI-4]", () => {
  const { questionController, answers, typed, type, wait, show } = openQuestionController();
  questionController.ask(write("one", "text"));
  // It is not on the screen while another page is: only painting it starts the time.
  questionController.openUnasked();
  wait(10_000);
  type("1");
  expect(typed).toEqual(["1"]);
  show(unaskedGuardMs);
  type("enter");
  wait(burstMs);
  type("down", "enter");
  wait(burstMs);
  expect(answers).toEqual([]);
  type("enter");
  expect(answers).toEqual([["one", "allow"]]);
});

test("tab takes a question that opened by itself at once, and keys of the terminal keep their meaning [CLI-4]", () => {
  const { questionController, answers, typed, type, wait, show } = openQuestionController();
  questionController.ask(write("one", "text"));
  show(unaskedGuardMs);
  type("ctrl+b", "shift+tab");
  expect(typed).toEqual(["ctrl+b", "shift+tab"]);
  expect(questionController.isOpen).toBe(true);
  type("tab");
  expect(questionController.hasFocus).toBe(true);
  wait(guardMs);
  type("3");
  expect(answers).toEqual([["one", "deny"]]);
});

test("agents that start together are one question that fits into a small window and has no lasting yes [BIL-1, BIL-2]", () => {
  const { questionController, answers, press } = openQuestionController();
  const subject = [
    "3 agents, together likely $0.80 ($0.36 to $2.40)",
    "640k tokens (290k to 1.9M), 3 min (50 s to 6 min)",
    "may write: fixer: Edit, Write",
    "may run:   none of them",
    "may reach: none of them",
    ...Array.from({ length: 20 }, (_, at) => `agent ${at}`),
  ].join("\n");
  const { diff: _diff, ...about } = write("one", "");
  questionController.ask({
    ...about,
    call: { id: "one", tool: "Agent", input: { agents: [] } },
    subject,
    reason: "settings ask above $2.00 (quotes.askAboveUsd)",
    rules: [],
    starts: 3,
  });
  questionController.open();
  const rows = questionController.view(80, 14).rows.map(rowText);
  expect(rows.length).toBeLessThanOrEqual(14);
  expect(rows[0]).toBe("▲ one wants to start 3 agents");
  expect(rows.join("\n")).toContain("may reach: none of them");
  expect(rows.join("\n")).toMatch(/more lines, v shows all/);
  expect(rows.join("\n")).not.toContain("do not ask again");
  press("1");
  expect(answers).toEqual([["one", "allow"]]);
});

const keyQuestion = (isOpen: boolean): FormQuestion => ({
  kind: "form",
  id: "access",
  path: ["retinue"],
  isChoice: true,
  fields: [
    {
      question: "Which model is to answer?",
      header: "who answers",
      multiple: false,
      options: [
        { label: "paste a key", description: "", input: { label: "the key", isSecret: true, isOpen } },
        { label: "the demo", description: "" },
      ],
    },
  ],
});
const aKey = "sk-ant-0123456789abcdef";

test("a key that is pasted at the question for one goes into its field, and is not shown [CLI-7]", () => {
  const { questionController, typed, type, wait, answers } = openQuestionController();
  questionController.ask(keyQuestion(false));
  questionController.openUnasked();
  questionController.view(80, 20);
  expect(questionController.paste(aKey)).toBe(true);
  const rows = questionController.view(80, 20).rows.map(rowText).join("\n");
  expect(rows).toContain("•".repeat(aKey.length));
  expect(rows).not.toContain("sk-ant");
  wait(10);
  type("enter");
  expect([answers, typed]).toEqual([[["access", "fields"]], []]);
});

test("a message that is a key, and nothing else, is not sent while one is asked for [CLI-7]", () => {
  const { questionController } = openQuestionController();
  expect(questionController.takeSecret(aKey)).toBe(false);
  questionController.ask(keyQuestion(false));
  expect(questionController.takeSecret("what is in packages/hosts/src/terminal ?")).toBe(false);
  expect(questionController.isOpen).toBe(false);
  expect(questionController.takeSecret(aKey)).toBe(true);
  expect(questionController.view(80, 20).rows.map(rowText).join("\n")).toContain("•••");
});

test("after a key that was refused the field is open for the next, and letters go into it [CLI-7]", () => {
  const { questionController, typed, type } = openQuestionController();
  questionController.ask(keyQuestion(true));
  questionController.openUnasked();
  questionController.view(80, 20);
  type("s", "k");
  expect(typed).toEqual([]);
  expect(questionController.view(80, 20).rows.map(rowText).join("\n")).toContain("› ••");
});

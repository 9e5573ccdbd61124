import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

test("in a window of 20 by 5 a question shows what would run, and all of it on a page [CLI-4]", async () => {
  const command = ["touch made", ...Array.from({ length: 30 }, (_, at) => `# line ${at}`)].join("\n");
  const { pty, place } = await openConversation(
    [{ text: "I make it.", calls: [{ name: "Bash", input: { command } }] }, "Done."],
    { columns: 20, rows: 5, words: ["make it now"] },
  );
  await pty.shows("touch made", "v: all", "1 yes 2 always");
  await pty.takesAnswers();
  pty.type("v");
  await pty.shows("What would run", "esc");
  pty.type("G");
  await pty.shows("# line 29");
  pty.type(keys.escape);
  await pty.shows("touch made", "1 yes 2 always");
  pty.type("1");
  await pty.shows("Done.");
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
  pty.type("?");
  await pty.shows("enter", "send");
  pty.resize(80, 12);
  await pty.shows("enter                   send");
});

const form = {
  name: "AskUserQuestion",
  input: {
    questions: [
      {
        question: "Which database should the new service use for its sessions and its queue?",
        header: "Database",
        multiSelect: false,
        options: ["SQLite", "Postgres", "MySQL", "Redis"].map((label) => ({
          label,
          description: `${label} is good for many things`,
        })),
      },
      {
        question: "Which parts?",
        header: "Parts",
        multiSelect: true,
        options: ["Api", "Cli", "Docs"].map((label) => ({ label, description: "" })),
      },
    ],
  },
};

test("questions with choices are a form, and plan mode ends with the plan to approve, also in windows of 20 by 8 and 40 by 10 [CLI-4]", async () => {
  const { pty, place, provider } = await openConversation(
    [
      { calls: [form] },
      { calls: [{ name: "Write", input: { file_path: "early.txt", content: "x" } }] },
      { calls: [{ name: "ExitPlanMode", input: { plan: "# The plan\n\n1. Write late.txt\n" } }] },
      { calls: [{ name: "Write", input: { file_path: "late.txt", content: "x" } }] },
      "Carried out.",
    ],
    { words: ["plan it", "--permission-mode", "plan"], columns: 20, rows: 8 },
  );
  // The question and its first choices; the rest of both can be reached.
  await pty.shows("Which database", "v: all", "1 SQLite", "more");
  await pty.takesAnswers();
  pty.type("v");
  await pty.shows("The question", "queue?");
  pty.type(keys.escape);
  await pty.shows("1 SQLite");
  pty.type(keys.up);
  await pty.shows("› 5 something else");
  pty.type(keys.enter);
  await pty.shows("your answer");
  pty.type(`CouchDB${keys.enter}`);
  await pty.shows("Which parts?", "1 [ ] Api", "5 done");
  pty.resize(40, 10);
  await pty.shows("main asks: Parts (2 of 2)", "4 something else  in your own words");
  pty.type("13");
  await pty.shows("1 [x] Api", "3 [x] Docs");
  pty.type("5");
  await pty.shows("has a plan to carry out");
  expect(userTexts(provider)).toMatch(/CouchDB.*Api, Docs/);
  expect(userTexts(provider)).toContain("plan mode");
  expect(existsSync(join(place.cwd, "early.txt"))).toBe(false);
  pty.resize(20, 8);
  await pty.shows("1 yes, edits too", "2 yes, ask edits", "3 edit the plan", "4 no, and say why");
  await pty.takesAnswers();
  pty.type("v");
  await pty.shows("# The plan", "1. Write late.txt");
  pty.type(keys.escape);
  await pty.shows("1 yes, edits too");
  pty.type("1");
  await pty.shows("Carried out.", "acceptEdits");
  expect(existsSync(join(place.cwd, "late.txt"))).toBe(true);
  // Whatever the size was, nothing of a question is left above.
  const above = (await pty.all()).join("\n");
  for (const left of ["Which database", "1 SQLite", "yes, edits too"]) expect(above).not.toContain(left);
});

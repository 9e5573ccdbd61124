import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ModelRequest } from "../../src/model/model.ts";
import type { ScriptedStep } from "../../src/testing/script.ts";
import { afterGuard, keys, openConversation, userTexts } from "./pty-stage.ts";

const agentCall = (description: string, prompt: string, more: object = {}) => ({
  name: "Agent",
  input: { description, prompt, subagent_type: "general-purpose", ...more },
});

/** Answers of children wait until they are let go. */
function heldChildren(): { readonly step: ScriptedStep; readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    release: resolve,
    step: {
      match: "child task",
      times: "any",
      async respond() {
        await promise;
        return "child is done";
      },
    },
  };
}

test("a question waits as a line until it is opened, never takes keys of the draft, and the draft survives it [CLI-4]", async () => {
  const { place, pty } = await openConversation(
    [
      { text: "I make a file.", calls: [{ name: "Bash", input: { command: "touch made" } }] },
      { text: "Done.", calls: [{ name: "Bash", input: { command: "touch other" } }] },
      "Not done.",
    ],
    { words: ["make it"] },
  );
  await pty.shows("tab to answer");
  pty.type("a draft");
  await pty.shows("> a draft", "tab to answer");
  pty.type(keys.tab);
  await pty.shows("main asks to use Bash", "touch made", "no rule allows", "Bash(touch made)");
  await afterGuard();
  pty.type("1");
  await pty.shows("Done.", "> a draft", "tab to answer");
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
  // A digit, a letter and Enter as somebody types them who has not seen the question.
  pty.type(" 1 yes please");
  await pty.shows("> a draft 1 yes please", "tab to answer");
  // Opened by mistake in the middle of a word: the next letters go to the draft.
  pty.type(`${keys.tab}1\rxyz`);
  await pty.shows("> a draft 1 yes pleasexyz", "tab to answer");
  expect(existsSync(join(place.cwd, "other"))).toBe(false);
  pty.type(keys.tab);
  await pty.shows("4 no, and say what");
  await afterGuard();
  pty.type("4");
  await pty.shows("what should it do instead?");
  pty.type(`use a folder${keys.enter}`);
  await pty.shows("Not done.");
});

test("an edit is shown as a diff before it is made, and a rule can be granted for the project [CLI-4]", async () => {
  const { place, pty } = await openConversation(
    [
      { calls: [{ name: "Read", input: { file_path: "a.txt" } }] },
      { calls: [{ name: "Edit", input: { file_path: "a.txt", old_string: "two", new_string: "zwei" } }] },
      "Edited.",
    ],
    { words: ["edit it"], files: { "a.txt": "one\ntwo\nthree\n" } },
  );
  await pty.shows("tab to answer");
  pty.type(keys.tab);
  await pty.shows("- two", "+ zwei", "yes, and do not ask again");
  await afterGuard();
  pty.type("\u001b[C\u001b[C2");
  await pty.shows("Edited.", "+ zwei");
  expect(readFileSync(join(place.cwd, "a.txt"), "utf8")).toBe("one\nzwei\nthree\n");
  expect(readFileSync(join(place.cwd, ".claude/settings.local.json"), "utf8")).toContain("Edit(");
});

test("the tree shows what each agent does; ctrl+b frees the caller, who hears of the end later [BGR-3, CLI-4]", async () => {
  const children = heldChildren();
  const { pty } = await openConversation(
    [
      children.step,
      { calls: [agentCall("look around", "child task one"), agentCall("count lines", "child task two")] },
      "I continue without them.",
      { times: "any", match: "task-notification", text: "I heard of it." },
    ],
    { words: ["start two"] },
  );
  await pty.shows("look around", "count lines", "2 agents", "Waiting for 2 agents");
  pty.type(keys.ctrlB);
  await pty.shows("I continue without them.", "(background)");
  children.release();
  await pty.shows("✓ general-purpose look around", "✓ general-purpose count lines", "I heard of it.");
});

test("the same question of several agents is answered once for all, and a granted rule settles the open ones [CLI-4]", async () => {
  const asking = (name: string, command: string): ScriptedStep => ({
    match: ({ messages: [first] }) => JSON.stringify(first).includes(`child task ${name}`),
    times: "any",
    respond: ({ messages }) =>
      messages.length > 1 ? `${name} has ended` : { calls: [{ name: "Bash", input: { command } }] },
  });
  const start = (...names: readonly string[]) => ({
    calls: names.map((name) => agentCall(`work ${name}`, `child task ${name}`)),
  });
  const { place, pty } = await openConversation(
    [
      ...["one", "two", "three"].map((name) => asking(name, "touch same")),
      ...["four", "five"].map((name) => asking(name, `touch ${name}`)),
      start("one", "two", "three"),
      start("four", "five"),
      "All five are back.",
    ],
    { words: ["start five"] },
  );
  await pty.shows("Bash touch same (3 agents ask the same)");
  pty.type(keys.tab);
  await pty.shows("asks to use Bash (3 agents ask the same)");
  await afterGuard();
  pty.type("1");
  await pty.shows("and 1 more question");
  expect(existsSync(join(place.cwd, "same"))).toBe(true);
  pty.type(keys.tab);
  await pty.shows("←→ where");
  await afterGuard();
  pty.type("e");
  await pty.shows("the rule to store");
  pty.type(`\u0015Bash(touch${keys.enter}`);
  await pty.shows("this is no rule");
  pty.type(`\u0015Bash(touch *)${keys.enter}`);
  await pty.shows("do not ask again for Bash(touch *)");
  pty.type("2");
  await pty.shows("All five are back.");
  expect(["four", "five"].map((name) => existsSync(join(place.cwd, name)))).toEqual([true, true]);
});

test("an agent can be opened, written to and stopped [CLI-4]", async () => {
  const children = heldChildren();
  const { pty } = await openConversation(
    [
      children.step,
      { calls: [agentCall("look around", "child task one")] },
      { times: "any", text: "It was stopped." },
    ],
    { words: ["start one"] },
  );
  await pty.shows("look around", "1 agent");
  pty.type(keys.down);
  pty.type(keys.enter);
  await pty.shows("child task one", "m message", "x stop");
  pty.type("m");
  await pty.shows("message to the agent");
  pty.type(`be quick${keys.enter}`);
  await pty.shows("reads the message");
  pty.type(keys.escape);
  await pty.shows("look around", "start one");
  pty.type("x");
  await pty.shows("✗ general-purpose look around", "you stopped it", "It was stopped.");
});

test("escape stops the agents that the turn waits for [CLI-4]", async () => {
  const children = heldChildren();
  const { pty, provider } = await openConversation(
    [
      children.step,
      { calls: [agentCall("look around", "child task one"), agentCall("count", "child task two")] },
    ],
    { words: ["start two"] },
  );
  await pty.shows("2 agents", "thinking");
  pty.type(keys.escape);
  await pty.shows("Interrupted", "interrupted with the turn");
  expect(provider.requests.slice(1).map(({ status }) => status)).toEqual(["abandoned", "abandoned"]);
});

test("before an agent starts in the background, one question asks for what it will need [PRM-6]", async () => {
  const { pty, place } = await openConversation(
    [
      {
        match: (request: ModelRequest) =>
          request.messages.length === 1 && JSON.stringify(request.messages).includes("child task"),
        calls: [{ name: "Bash", input: { command: "touch by-child" } }],
      },
      {
        match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes("child task"),
        text: "child is done",
        times: "any",
      },
      { calls: [agentCall("make a file", "child task", { run_in_background: true })] },
      { times: "any", text: "Started." },
    ],
    { words: ["in the background please"] },
  );
  await pty.shows("asks what general-purpose may use in the background");
  pty.type(keys.tab);
  await pty.shows("[x] Bash", "start it with what is ticked");
  await afterGuard();
  const screen = (await pty.screen()).join("\n");
  const start = /(\d) start it with what is ticked/.exec(screen)?.[1] ?? "";
  pty.type(start);
  await pty.shows("✓ general-purpose make a file");
  expect(existsSync(join(place.cwd, "by-child"))).toBe(true);
});

test("plan mode ends with the plan, which the person approves [CLI-4]", async () => {
  const { pty, place, provider } = await openConversation(
    [
      { calls: [{ name: "Write", input: { file_path: "early.txt", content: "x" } }] },
      { calls: [{ name: "ExitPlanMode", input: { plan: "# The plan\n\n1. Write late.txt\n" } }] },
      { calls: [{ name: "Write", input: { file_path: "late.txt", content: "x" } }] },
      "Carried out.",
    ],
    { words: ["plan it", "--permission-mode", "plan"] },
  );
  await pty.shows("The plan", "1. Write late.txt", "has a plan to carry out");
  expect(existsSync(join(place.cwd, "early.txt"))).toBe(false);
  expect(userTexts(provider)).toContain("plan mode");
  pty.type(keys.tab);
  await pty.shows("carry it out, and accept edits");
  await afterGuard();
  pty.type("1");
  await pty.shows("Carried out.", "acceptEdits");
  expect(existsSync(join(place.cwd, "late.txt"))).toBe(true);
});

test("shift+tab changes the mode for the next call [CLI-4]", async () => {
  const { pty, place } = await openConversation([
    { calls: [{ name: "Write", input: { file_path: "free.txt", content: "x" } }] },
    "Written.",
  ]);
  await pty.shows("default");
  pty.type(keys.shiftTab);
  await pty.shows("acceptEdits");
  pty.type(`write it${keys.enter}`);
  await pty.shows("Written.");
  expect(existsSync(join(place.cwd, "free.txt"))).toBe(true);
  pty.type(keys.shiftTab);
  await pty.shows("· plan");
  pty.type(keys.shiftTab);
  await pty.shows("· default");
});

test("questions of the agent with choices are a form [CLI-4]", async () => {
  const { pty, provider } = await openConversation(
    [
      {
        calls: [
          {
            name: "AskUserQuestion",
            input: {
              questions: [
                {
                  question: "Which database?",
                  header: "Database",
                  multiSelect: false,
                  options: [
                    { label: "SQLite", description: "one file" },
                    { label: "Postgres", description: "a server" },
                  ],
                },
              ],
            },
          },
        ],
      },
      "As you wish.",
    ],
    { words: ["choose one"] },
  );
  await pty.shows("asks: Which database?");
  pty.type(keys.tab);
  await pty.shows("1 SQLite", "2 Postgres", "something else");
  await afterGuard();
  pty.type("2");
  await pty.shows("As you wish.");
  expect(userTexts(provider)).toContain("Postgres");
});

test("ctrl+b moves a running command to the background: the agent continues immediately [BGR-3]", async () => {
  const { pty, place } = await openConversation(
    [
      { calls: [{ name: "Bash", input: { command: "while [ ! -e go ]; do sleep 0.05; done; touch late" } }] },
      "I continue.",
    ],
    { words: ["run it", "--dangerously-skip-permissions"] },
  );
  await pty.shows("○ Bash while");
  pty.type(keys.ctrlB);
  await pty.shows("I continue.", "The person moved the command");
  expect(existsSync(join(place.cwd, "late"))).toBe(false);
  place.write("go", "");
  await expect.poll(() => existsSync(join(place.cwd, "late")), { timeout: 5000 }).toBe(true);
  pty.type(keys.ctrlD);
  await pty.exited;
});

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedStep } from "@retinue/testing/script.ts";
import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

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

test("a question that meets a draft waits as a line until it is opened, never takes keys of the draft, and the draft survives it; shift+tab changes the mode for the next call [CLI-4]", async () => {
  const { place, pty } = await openConversation(
    [
      { text: "I make a file.", calls: [{ name: "Bash", input: { command: "touch made" } }] },
      { text: "Done.", calls: [{ name: "Bash", input: { command: "touch other" } }] },
      "Not done.",
      { calls: [{ name: "Write", input: { file_path: "free.txt", content: "x" } }] },
      "Written.",
    ],
    { words: ["make it"] },
  );
  await pty.shows("main asks to use Bash");
  // Letters are typing, also where a question has opened by itself.
  pty.type("a draft");
  await pty.shows("> a draft", "tab to answer");
  pty.type(keys.tab);
  await pty.shows("main asks to use Bash", "touch made", "no allow rule matches", "Bash(touch made)");
  await pty.takesAnswers();
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
  // Ctrl+C leaves the question as a line and the draft as it is, whenever it comes.
  pty.type(`${keys.tab}${keys.ctrlC}`);
  await pty.shows("> a draft 1 yes pleasexyz", "tab to answer", "ctrl+c again ends");
  pty.type(keys.tab);
  await pty.shows("4 no, and say what");
  await pty.takesAnswers();
  pty.type("4");
  await pty.shows("what should it do instead?");
  pty.type(`use a folder${keys.enter}`);
  await pty.shows("Not done.");
  await pty.isMissing("esc to interrupt");

  pty.type(`${keys.ctrlC}${keys.shiftTab}`);
  await pty.shows("acceptEdits");
  pty.type(`write it${keys.enter}`);
  await pty.shows("Written.");
  expect(existsSync(join(place.cwd, "free.txt"))).toBe(true);
  pty.type(keys.shiftTab);
  await pty.shows("· plan");
  pty.type(keys.shiftTab);
  await pty.shows("· default");
});

test("a question that comes while nothing is written is answered by one key, and the answer stays as one line; what is typed goes to the draft [CLI-4]", async () => {
  const { place, pty } = await openConversation(
    [
      { calls: [{ name: "Bash", input: { command: "touch made" } }] },
      { calls: [{ name: "Bash", input: { command: "touch other" } }] },
      "Not done.",
    ],
    { words: ["make it"] },
  );
  await pty.shows("main asks to use Bash", "touch made", "1 yes");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("✓ Bash touch made  you: yes", "touch other");
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
  await pty.takesAnswers();
  // A message that begins like an answer, as fast as somebody types.
  pty.type("1 file is enough");
  await pty.shows("> 1 file is enough", "tab to answer");
  pty.type(keys.enter);
  // The draft is sent, so the question opens again, and waits for a moment again.
  await pty.shows("1 file is enough  (queued", "touch other", "3 no");
  expect(existsSync(join(place.cwd, "other"))).toBe(false);
  pty.type(keys.tab);
  await pty.shows("tab back to the draft");
  pty.type(keys.escape);
  await pty.shows("✗ Bash touch other  you: no", "Not done.");
  // One line is enough: what the model reads about it is not for the person.
  expect((await pty.all()).join("\n")).not.toContain("the person refused it");
  expect(existsSync(join(place.cwd, "other"))).toBe(false);
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
  await pty.shows("asks to use Edit\n    a.txt\n", "- two", "+ zwei", "yes, and do not ask again");
  pty.type(keys.tab);
  await pty.shows("tab back to the draft");
  pty.type("\u001b[C\u001b[C2");
  await pty.shows("Edited.", "+ zwei");
  expect(readFileSync(join(place.cwd, "a.txt"), "utf8")).toBe("one\nzwei\nthree\n");
  expect(readFileSync(join(place.cwd, ".claude/settings.local.json"), "utf8")).toContain("Edit(");
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
  await pty.shows("asks to use Bash (3 agents ask the same)");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("2 questions", "←→ where");
  expect(existsSync(join(place.cwd, "same"))).toBe(true);
  await pty.takesAnswers();
  pty.type("e");
  await pty.shows("the rule to store");
  pty.type(`\u0015Bash(touch${keys.enter}`);
  await pty.shows("this is not a valid rule");
  pty.type(`\u0015Bash(touch *)${keys.enter}`);
  await pty.shows("do not ask again for Bash(touch *)");
  pty.type("2");
  await pty.shows("All five are back.");
  expect(["four", "five"].map((name) => existsSync(join(place.cwd, name)))).toEqual([true, true]);
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
  await pty.shows("[x] Bash", "start it with what is ticked");
  await pty.takesAnswers();
  const screen = (await pty.screen()).join("\n");
  const start = /(\d) start it with what is ticked/.exec(screen)?.[1] ?? "";
  pty.type(start);
  await pty.shows("✓ general-purpose make a file");
  expect(existsSync(join(place.cwd, "by-child"))).toBe(true);
});

const backgroundAsks = JSON.stringify({ backgroundAgents: { questions: "ask" } });

/** A child that makes a file, which no rule allows. */
const makingChild = (task: string, file: string): readonly ScriptedStep[] => [
  {
    match: (request: ModelRequest) =>
      request.messages.length === 1 && JSON.stringify(request.messages).includes(task),
    calls: [{ name: "Bash", input: { command: `touch ${file}` } }],
  },
  {
    match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(task),
    text: "child is done",
    times: "any",
  },
];

test("by setting, an agent in the background asks while nothing else runs, and ctrl+b keeps an open question open [BGR-6]", async () => {
  const { pty, place } = await openConversation(
    [
      ...makingChild("child task one", "by-one"),
      ...makingChild("child task two", "by-two"),
      {
        match: "in the background please",
        calls: [agentCall("make one", "child task one", { run_in_background: true })],
      },
      { match: "now wait for it", calls: [agentCall("make two", "child task two")] },
      { times: "any", text: "I continue." },
    ],
    { words: ["in the background please", "--settings", backgroundAsks] },
  );
  await pty.shows("I continue.", "asks to use Bash");
  await pty.isMissing("esc to interrupt");
  await pty.shows("touch by-one", "1 yes");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("✓ general-purpose make one");
  expect(existsSync(join(place.cwd, "by-one"))).toBe(true);

  pty.type(`now wait for it${keys.enter}`);
  await pty.shows("Waiting for 1 agent", "asks to use Bash");
  pty.type(keys.ctrlB);
  await pty.isMissing("Waiting for 1 agent");
  await pty.shows("waiting for an answer", "asks to use Bash");
  expect(existsSync(join(place.cwd, "by-two"))).toBe(false);
  await pty.shows("touch by-two", "1 yes");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("✓ general-purpose make two");
  expect(existsSync(join(place.cwd, "by-two"))).toBe(true);
});

test("the tree shows what each agent does; ctrl+b frees the caller, who hears of the end later; an agent can be opened, written to and stopped; escape stops those that the turn waits for [BGR-3, CLI-4]", async () => {
  const children = heldChildren();
  const never = new Promise<string>(() => undefined);
  const { pty, provider } = await openConversation(
    [
      children.step,
      { match: "endless task", times: "any", respond: () => never },
      { calls: [agentCall("look around", "child task one"), agentCall("count lines", "child task two")] },
      "I continue without them.",
      { match: "start a third", calls: [agentCall("dig deep", "endless task three")] },
      { match: "you stopped it", text: "It was stopped." },
      {
        match: "start two more",
        calls: ["four", "five"].map((name) => agentCall(name, `endless task ${name}`)),
      },
      { times: "any", text: "I heard of it." },
    ],
    { words: ["start two"] },
  );
  await pty.shows("look around", "count lines", "2 agents", "Waiting for 2 agents");
  pty.type(keys.ctrlB);
  await pty.shows("I continue without them.", "(background)");
  children.release();
  await pty.shows("✓ general-purpose look around", "✓ general-purpose count lines", "I heard of it.");
  await pty.isMissing("esc to interrupt");

  pty.type(`start a third${keys.enter}`);
  await pty.shows("dig deep", "1 agent");
  pty.type(keys.down);
  pty.type(keys.enter);
  await pty.shows("endless task three", "m message", "x stop");
  pty.type("m");
  await pty.shows("message to the agent");
  pty.type(`be quick${keys.enter}`);
  await pty.shows("reads the message");
  pty.type(keys.escape);
  await pty.shows("dig deep", "start a third");
  pty.type("x");
  await pty.shows("✗ general-purpose dig deep", "you stopped it");
  await pty.isMissing("esc to interrupt");

  pty.type(`start two more${keys.enter}`);
  await pty.shows("2 agents");
  await expect.poll(() => provider.requests.filter(({ status }) => status === "open").length).toBe(2);
  pty.type(keys.escape);
  await pty.shows("Interrupted", "interrupted with the turn");
  await expect
    .poll(() => provider.requests.slice(-2).map(({ status }) => status))
    .toEqual(["abandoned", "abandoned"]);
});

test("ctrl+b moves a running command to the background, the agent's and the person's own; its end is shown and reported; after ! the same rules hold, and the agent hears of it [BGR-2, BGR-3, CLI-4]", async () => {
  const untilThere = (file: string): string =>
    `echo begun; while [ ! -e ${file} ]; do sleep 0.05; done; touch late-${file}`;
  const { pty, place, provider } = await openConversation(
    [
      { calls: [{ name: "Bash", input: { command: untilThere("one") } }] },
      "I continue.",
      { match: "task-notification", text: "It has ended." },
      "I saw it.",
    ],
    {
      words: ["run it", "--allowedTools", "Bash(echo *),Bash(while *),Bash(sleep *),Bash(touch late-*)"],
      files: { "note.txt": "the first line\nthe content of the note\n" },
      columns: 130,
    },
  );
  const isThere = (name: string): boolean => existsSync(join(place.cwd, name));
  await pty.shows("late-one\n  begun");
  pty.type(keys.ctrlB);
  await pty.shows("I continue.", "  The person moved the command to the background");
  await pty.isMissing("esc to interrupt");

  pty.type(`!${untilThere("two")}${keys.enter}`);
  await pty.shows("late-two\n  begun", "esc to interrupt");
  pty.type(keys.ctrlB);
  await pty.shows("It continues in the background as task");
  await pty.isMissing("esc to interrupt");
  expect([isThere("late-one"), isThere("late-two")]).toEqual([false, false]);
  place.write("two", "");
  await pty.shows("late-two  ended in the background");
  // What the person ran is read with the next message, what the agent ran begins a turn.
  expect(provider.requests).toHaveLength(2);
  place.write("one", "");
  await pty.shows("late-one  ended in the background", "It has ended.");
  expect([isThere("late-one"), isThere("late-two")]).toEqual([true, true]);
  expect(userTexts(provider)).toContain("ended with the code 0");
  await pty.isMissing("esc to interrupt");

  pty.type(`!cat note.txt${keys.enter}`);
  await pty.shows("Bash cat note.txt", "  the first line", "  the content of the note");
  pty.type(`!touch made${keys.enter}`);
  await pty.shows("3 no");
  await pty.takesAnswers();
  pty.type("3");
  await pty.isMissing("3 no");
  expect(isThere("made")).toBe(false);
  pty.type(`what did it say?${keys.enter}`);
  await pty.shows("I saw it.");
  expect(userTexts(provider)).toContain("the content of the note");
});

test("a command and a change of mode from before the conversation is open count; the command outlives a turn that ends meanwhile [CLI-4]", async () => {
  const { pty, place } = await openConversation(["Answered."], {
    words: ["--dangerously-skip-permissions"],
  });
  // Four modes: after four changes it is the one of the start.
  pty.type(keys.shiftTab.repeat(4));
  pty.type(`!echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over$((1+1))${keys.enter}`);
  await pty.shows("bypassPermissions");
  await pty.shows("  begun", "esc to interrupt");
  pty.type(`meanwhile${keys.enter}`);
  await pty.shows("Answered.", "○ Bash echo begun");
  place.write("go", "");
  await pty.shows("● Bash echo begun", "  over2");
  expect((await pty.all()).join("\n")).not.toContain("interrupted");
});

test("a teammate of a conversation runs in a process of its own, without the tools for the person at the lead [TEA-8]", async () => {
  const isAda = ({ system }: ModelRequest): boolean =>
    system.join("\n").includes('You are "ada", a teammate');
  const { pty, provider } = await openConversation(
    [
      { match: isAda, text: "I have looked.", times: "any" },
      { calls: [agentCall("look", "look around", { name: "ada" })] },
      { text: "Ada works, or has ended.", times: "any" },
    ],
    { words: ["start ada", "--settings", JSON.stringify({ teams: true, teammateMode: "process" })] },
  );
  await pty.shows("Ada works, or has ended.");
  expect((await pty.all()).join("\n")).not.toContain("was not started");
  const found = (): ModelRequest | undefined =>
    provider.requests.find(({ request }) => isAda(request))?.request;
  await expect.poll(found, { timeout: 20_000 }).toBeDefined();
  const names = found()?.tools.map(({ name }) => name) ?? [];
  expect(names).toContain("SendMessage");
  expect(names).not.toContain("AskUserQuestion");
  expect(names).not.toContain("ExitPlanMode");
  const processes = execFileSync("ps", ["-o", "args=", "--ppid", String(pty.pid)], { encoding: "utf8" });
  expect(processes).toContain("run-teammate");
});

test("an interrupted turn takes the question before an agent in the background with it, and the agent does not start [PRM-6, CLI-4]", async () => {
  const { pty, provider } = await openConversation(
    [
      { calls: [agentCall("make a file", "child task", { run_in_background: true })] },
      { times: "any", text: "Over." },
    ],
    { words: ["in the background please"] },
  );
  await pty.shows("start it with what is ticked", "Waiting for your answer");
  pty.type(keys.ctrlC);
  await pty.hasShown("Interrupted after");
  await pty.isMissing("start it with what is ticked");
  await pty.isMissing("1 question");
  expect(JSON.stringify(provider.requests.map(({ request }) => request.messages))).not.toContain(
    '"text":"child task"',
  );
});

test("the view of an agent shows a call that runs as such, with its command as text [CLI-4]", async () => {
  const command = "until [ -e go ]; do sleep 0.05; done";
  const { pty, place } = await openConversation(
    [
      {
        match: ({ messages }: ModelRequest) =>
          messages.length === 1 && JSON.stringify(messages).includes("child task"),
        text: "I wait.",
        calls: [{ name: "Bash", input: { command, description: "waits" } }],
      },
      {
        match: ({ messages: [first] }: ModelRequest) => JSON.stringify(first).includes("child task"),
        text: "child is done",
      },
      { calls: [agentCall("wait for the file", "child task")] },
      "It has ended.",
    ],
    { words: ["start one", "--allowedTools", "Bash"] },
  );
  await pty.shows("wait for the file", "Bash until");
  pty.type(keys.down);
  await pty.shows("enter opens · x stops");
  pty.type(keys.enter);
  await pty.shows("I wait.", `    ${command}`, "description: waits", "x stop");
  const shown = (await pty.screen()).join("\n");
  expect(shown).toContain("○ Bash");
  expect(shown).not.toMatch(/Interrupted|"command"/);
  place.write("go", "");
  await pty.shows("● Bash", "child is done");
  pty.type(keys.escape);
  await pty.shows("It has ended.");
});

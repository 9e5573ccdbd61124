import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, pasted, userTexts } from "./pty-stage.ts";

const forever = new Promise<string>(() => undefined);

test("a person types a prompt and reads the streamed answer [CLI-1]", async () => {
  const { pty } = await openConversation(["Hello **there**.\n\n- one\n- two\n", "Again."]);
  pty.type("say hello");
  await pty.shows("> say hello");
  pty.type(keys.enter);
  await pty.shows("Hello there.", "- two", "claude-sonnet-5");
  pty.type(`more${keys.enter}`);
  await pty.shows("Again.");
  pty.type(keys.ctrlC);
  await pty.shows("again ends");
  pty.type(keys.ctrlC);
  expect(await pty.exited).toEqual({ code: 0 });
  const lines = await pty.all();
  expect(lines.filter((line) => line.includes("Hello there."))).toHaveLength(1);
  expect(lines.at(-1)).toMatch(/^Continue: retinue --resume [0-9a-f-]{36}$/);
});

test("a prompt on the command line is sent immediately, and the conversation is continued later [CLI-1]", async () => {
  const { pty, again, provider } = await openConversation(["First answer.", "Second answer."], {
    words: ["one two"],
  });
  await pty.shows("First answer.");
  pty.type(keys.ctrlD);
  await pty.exited;
  const next = again(["--continue"]);
  await next.shows("> one two", "First answer.");
  next.type(`three${keys.enter}`);
  await next.shows("Second answer.");
  expect(userTexts(provider)).toContain("one two");
});

test("escape interrupts the turn and keeps the draft; the session continues [CLI-4]", async () => {
  const { pty, provider } = await openConversation([() => forever, "Here again."], {
    words: ["wait for it"],
  });
  await pty.shows("Working");
  pty.type("half a draft");
  await pty.shows("> half a draft");
  pty.type(keys.escape);
  await pty.shows("Interrupted", "> half a draft");
  expect(provider.requests[0]?.status).toBe("abandoned");
  pty.type(keys.enter);
  await pty.shows("Here again.");
});

test("a message that is written meanwhile is queued, can be taken back, and is read between two calls [CLI-4]", async () => {
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  const { pty, provider } = await openConversation(
    [
      async () => {
        await held;
        return { calls: [{ name: "Read", input: { file_path: "a.txt" } }] };
      },
      "All read.",
    ],
    { words: ["read the file"], files: { "a.txt": "content" } },
  );
  await pty.shows("Working");
  pty.type(`wrong${keys.enter}`);
  await pty.shows("wrong", "(queued");
  pty.type(keys.up);
  await pty.shows("> wrong");
  await pty.isMissing("(queued");
  pty.type(`${keys.ctrlC}right${keys.enter}`);
  await pty.shows("(queued");
  go();
  await pty.shows("All read.", "> right", "Read a.txt");
  expect(provider.requests).toHaveLength(2);
  expect(userTexts(provider)).toContain("right");
  expect(userTexts(provider)).not.toContain("wrong");
});

test("a paste of any size is one chip in the draft and reaches the model whole [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["Got it."]);
  const lines = Array.from({ length: 2000 }, (_, at) => `pasted line ${at}`);
  await pty.shows("default");
  pty.type(pasted(lines.join("\n")));
  await pty.shows("[pasted #1: 2,000 lines]");
  pty.type(keys.enter);
  await pty.shows("Got it.");
  expect(userTexts(provider)).toContain(lines.join("\\n"));
});

test("lines: shift+enter and a backslash before enter [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["Three lines."]);
  await pty.shows("default");
  pty.type("one\u001b[13;2utwo\\\rthree\r");
  await pty.shows("Three lines.");
  expect(userTexts(provider)).toContain("one\\ntwo\\nthree");
});

test("a command after ! runs through the same rules, and the agent hears of it [CLI-4]", async () => {
  const { pty, provider, place } = await openConversation(["I saw it."], {
    files: { "note.txt": "the content of the note\n" },
  });
  await pty.shows("default");
  pty.type(`!cat note.txt${keys.enter}`);
  await pty.shows("Bash cat note.txt", "the content of the note");
  pty.type(`!touch made${keys.enter}`);
  await pty.shows("tab to answer");
  expect(existsSync(join(place.cwd, "made"))).toBe(false);
  pty.type(keys.tab);
  await pty.shows("3 no");
  await new Promise((done) => setTimeout(done, 350));
  pty.type("3");
  await pty.isMissing("3 no");
  pty.type(`what did it say?${keys.enter}`);
  await pty.shows("I saw it.");
  expect(userTexts(provider)).toContain("the content of the note");
});

test("earlier prompts come back with up and are found with ctrl+r, also those of earlier sessions [CLI-4]", async () => {
  const { pty, again } = await openConversation(["One.", "Two."], { words: ["the first prompt"] });
  await pty.shows("One.");
  pty.type(`a second one${keys.enter}`);
  await pty.shows("Two.");
  pty.type(keys.ctrlD);
  await pty.exited;
  const next = again();
  await next.shows("default");
  next.type(keys.up);
  await next.shows("> a second one");
  next.type(keys.up);
  await next.shows("> the first prompt");
  next.type(`${keys.ctrlC}${keys.ctrlR}second`);
  await next.shows("search: second", "a second one");
  next.type(keys.enter);
  await next.shows("> a second one");
});

test("@ offers files of the project, / commands and skills, and # adds a note to the instructions [CLI-4]", async () => {
  const { pty, place } = await openConversation([], {
    files: {
      "src/deep/wanted-file.ts": "",
      ".claude/skills/deploy/SKILL.md": "---\ndescription: Ships it.\n---\nShip.\n",
    },
  });
  await pty.shows("default");
  pty.type("look at @wanted");
  await pty.shows("src/deep/wanted-file.ts");
  pty.type(keys.tab);
  await pty.shows("> look at @src/deep/wanted-file.ts");
  pty.type(`${keys.ctrlC}/dep`);
  await pty.shows("/deploy", "Ships it.");
  pty.type(`${keys.ctrlC}/he${keys.enter}`);
  await pty.shows("Keys and commands", "shift+tab");
  pty.type(keys.escape);
  await pty.isMissing("Keys and commands");
  pty.type(`# use tabs${keys.enter}`);
  await pty.shows("Added to");
  expect(readFileSync(join(place.cwd, "CLAUDE.md"), "utf8")).toBe("- use tabs\n");
});

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, pasted, userTexts } from "./pty-stage.ts";

test("a person types prompts of lines and pastes of any size, reads the streamed answers, and leaves with ctrl+c twice [CLI-1, CLI-4]", async () => {
  const { pty, provider } = await openConversation([
    "Hello **there**.\n\n- one\n- two\n",
    "Three lines.",
    "Got it.",
  ]);
  pty.type("say hello");
  await pty.shows("> say hello");
  // No shell started it, so nothing stops it: it continues.
  pty.type("\u001a");
  await expect.poll(() => pty.bytes().split("\u001b[?2004h").length).toBe(3);
  await pty.shows("> say hello");
  pty.type(keys.enter);
  await pty.shows("Hello there.", "- two", "claude-sonnet-5");
  pty.type("one\u001b[13;2utwo\\\rthree\r");
  await pty.shows("Three lines.");
  expect(userTexts(provider)).toContain("one\\ntwo\\nthree");
  const lines = Array.from({ length: 2000 }, (_, at) => `pasted line ${at}`);
  pty.type(pasted(lines.join("\n")));
  await pty.shows("[pasted #1: 2,000 lines]");
  pty.type(keys.enter);
  await pty.shows("Got it.");
  expect(userTexts(provider)).toContain(lines.join("\\n"));
  await pty.isMissing("esc to interrupt");
  pty.type(keys.ctrlC);
  await pty.shows("again ends");
  pty.type(keys.ctrlC);
  expect(await pty.exited).toEqual({ code: 0 });
  const shown = await pty.all();
  expect(shown.filter((line) => line.includes("Hello there."))).toHaveLength(1);
  expect(shown.at(-1)).toMatch(/^Continue: retinue --resume [0-9a-f-]{36}$/);
});

test("a prompt on the command line is sent immediately, the conversation is continued later, and earlier prompts come back with up and ctrl+r [CLI-1, CLI-4]", async () => {
  const { pty, again, provider } = await openConversation(["One.", "Two.", "Three."], {
    words: ["the first prompt"],
  });
  await pty.shows("One.");
  pty.type(`a second one${keys.enter}`);
  await pty.shows("Two.");
  await pty.isMissing("esc to interrupt");
  pty.type(keys.ctrlD);
  await pty.exited;
  const next = again(["--continue"]);
  await next.shows("> the first prompt", "One.", "Two.", "default");
  next.type(keys.up);
  await next.shows("\n> a second one\n claude");
  next.type(keys.up);
  await next.shows("\n> the first prompt\n claude");
  next.type(`${keys.ctrlC}${keys.ctrlR}second`);
  await next.shows("search: second", "a second one");
  next.type(keys.enter);
  await next.shows("\n> a second one\n claude");
  next.type(keys.enter);
  await next.shows("Three.");
  expect(userTexts(provider)).toContain("the first prompt");
});

test("escape interrupts the turn and keeps the draft; messages written meanwhile are queued, can be taken back, and are read between two calls [CLI-4]", async () => {
  const held = Promise.withResolvers<void>();
  const { pty, provider } = await openConversation(
    [
      { text: "Half of it, and never the rest", failure: "stall", after: 2 },
      async () => {
        await held.promise;
        return { calls: [{ name: "Read", input: { file_path: "a.txt" } }] };
      },
      "All read.",
    ],
    { words: ["wait for it"], files: { "a.txt": "content" }, provider: { deltaSize: 5 } },
  );
  await pty.shows("Half of");
  pty.type("half a draft");
  await pty.shows("> half a draft");
  pty.type(keys.escape);
  await pty.shows("Interrupted", "> half a draft");
  await expect.poll(() => provider.requests[0]?.status).toBe("abandoned");
  pty.type(keys.enter);
  await pty.shows("Working");
  pty.type(`wrong${keys.enter}`);
  await pty.shows("wrong", "(queued");
  pty.type(keys.up);
  await pty.shows("> wrong");
  await pty.isMissing("(queued");
  pty.type(`${keys.ctrlC}right${keys.enter}`);
  await pty.shows("(queued");
  held.resolve();
  await pty.shows("All read.", "> right", "Read a.txt");
  expect(provider.requests).toHaveLength(3);
  expect(userTexts(provider)).toContain("right");
  expect(userTexts(provider)).not.toContain("wrong");
  // What was read of the answer that was interrupted.
  expect(userTexts(provider)).toContain("Half of");
});

test("@ offers files of the project, / commands and skills, # adds a note to the instructions, and ctrl+g opens the draft in the editor [CLI-4]", async () => {
  const { pty, place } = await openConversation([], {
    files: {
      "src/deep/wanted-file.ts": "",
      ".claude/skills/deploy/SKILL.md": "---\ndescription: Ships it.\n---\nShip.\n",
      "edit.sh": 'printf "%s, edited" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n',
    },
    environment: { EDITOR: "sh ./edit.sh" },
  });
  await pty.shows("default");
  pty.type("look at @wanted");
  await pty.shows("src/deep/wanted-file.ts");
  pty.type(keys.tab);
  await pty.shows("> look at @src/deep/wanted-file.ts");
  pty.type(`${keys.ctrlC}/`);
  await pty.shows("/help  ", "↓ ");
  pty.type("dep");
  await pty.shows("/deploy", "Ships it.");
  pty.type(`${keys.ctrlC}/he${keys.enter}`);
  await pty.shows("Keys and commands", "shift+tab");
  pty.type(keys.escape);
  await pty.isMissing("Keys and commands");
  pty.type(`# use tabs${keys.enter}`);
  await pty.shows("Added to");
  expect(readFileSync(join(place.cwd, "CLAUDE.md"), "utf8")).toBe("- use tabs\n");
  pty.type("my draft");
  await pty.shows("> my draft");
  pty.type("\u0007");
  await pty.shows("> my draft, edited");
  expect((await pty.all()).filter((line) => line.includes("my draft"))).toEqual(["> my draft, edited"]);
});

test("a key that is refused says so, and with the right one from /login the conversation continues [CLI-4, CLI-7]", async () => {
  const { pty, place } = await openConversation(["Hello."], {
    words: ["say hello"],
    provider: { apiKey: "right-key" },
    columns: 200,
  });
  // Said at the start, and a choice is offered before anything is sent.
  await pty.shows("refuses the key from ANTHROPIC_API_KEY (401)", "1 paste a key");
  pty.type(keys.tab);
  await pty.shows("tab back to the draft");
  pty.type(keys.escape);
  await pty.shows(
    "401",
    "The key is not accepted. Check ANTHROPIC_API_KEY",
    "Enter another key with /login.",
  );
  await pty.isMissing("esc to interrupt");
  pty.type(`/login${keys.enter}`);
  await pty.shows("1 paste a key");
  pty.type(keys.tab);
  await pty.shows("tab back to the draft");
  pty.type("1");
  await pty.shows("the key  enter sends");
  pty.type(`wrong-key${keys.enter}`);
  await pty.hasShown("refuses the key (status 401)");
  // The field is open for the next one.
  await pty.shows("the key  enter sends");
  pty.type(`right-key${keys.enter}`);
  await pty.shows("Where should the key be kept?", "1 in your settings  ~/.claude/settings.json");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("The key is kept in");
  const file = join(place.home, ".claude/settings.json");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ env: { ANTHROPIC_API_KEY: "right-key" } });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  pty.type(`now${keys.enter}`);
  await pty.shows("Hello.");
  expect(pty.bytes()).not.toMatch(/right-key|wrong-key/);
});

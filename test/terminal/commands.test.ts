import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

test("/model changes the model of the conversation, and one that cannot be had changes nothing [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["One.", "Two.", "Three."], {
    words: ["the first prompt"],
  });
  await pty.shows("One.");
  await pty.isMissing("esc to interrupt");
  pty.type(`/model haiku${keys.enter}`);
  await pty.shows("claude-haiku-5-5 ·");
  pty.type(`continue please${keys.enter}`);
  await pty.shows("Two.");
  await pty.isMissing("esc to interrupt");
  expect(provider.requests.at(-1)?.body["model"]).toBe("claude-haiku-5-5");
  expect(userTexts(provider)).toContain("the first prompt");
  pty.type(`/model no such model${keys.enter}`);
  await pty.shows("cannot be used");
  pty.type(`once more${keys.enter}`);
  await pty.shows("Three.");
  expect(userTexts(provider)).toContain("continue please");
});

test("esc esc goes back to before a prompt, which becomes the draft [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["One.", "Two.", "Other."], {
    words: ["the first prompt"],
  });
  await pty.shows("One.");
  pty.type(`a bad second${keys.enter}`);
  await pty.shows("Two.");
  pty.type(keys.escape);
  await pty.shows("esc again");
  pty.type(keys.escape);
  await pty.shows("Go back to before a prompt", "the first prompt", "a bad second");
  pty.type(keys.enter);
  await pty.shows("> a bad second", "One.");
  pty.type(` and better${keys.enter}`);
  await pty.shows("Other.");
  const sent = userTexts(provider);
  expect(sent).toContain("the first prompt");
  expect(sent).toContain("a bad second and better");
  expect(JSON.stringify(provider.requests.at(-1)?.request.messages)).not.toContain("Two.");
});

test("/clear begins a new conversation, /resume goes back to the old one [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["One.", "New.", "Old again."], {
    words: ["the first prompt"],
  });
  await pty.shows("One.");
  pty.type(`/clear${keys.enter}`);
  await pty.shows("A new conversation begins here.");
  pty.type(`something else${keys.enter}`);
  await pty.shows("New.");
  expect(userTexts(provider)).not.toContain("the first prompt");
  pty.type(`/resume${keys.enter}`);
  await pty.shows("Conversations of this folder", "the first prompt", "something else");
  pty.type("first");
  await pty.isMissing("something else");
  pty.type(keys.enter);
  await pty.shows("> the first prompt", "One.");
  pty.type(`and now${keys.enter}`);
  await pty.shows("Old again.");
  expect(userTexts(provider)).toContain("the first prompt");
});

test("commands show their pages and give the conversation back [CLI-4]", async () => {
  const { pty } = await openConversation(["One."], { words: ["the first prompt"] });
  await pty.shows("One.");
  await pty.isMissing("esc to interrupt");
  for (const [command, text] of [
    ["agents", "general-purpose"],
    ["permissions", "The mode is default"],
    ["mcp", "No MCP servers"],
    ["context", "The window of claude-sonnet-5"],
    ["memory", "CLAUDE.md"],
    ["cost", "the first prompt"],
    ["inspect", "the first prompt"],
    ["doctor", "Node"],
  ] as const) {
    pty.type(`/${command}${keys.enter}`);
    await pty.shows(`/${command}`, text, "esc back");
    pty.type(keys.escape);
    await pty.isMissing("esc back");
    await pty.shows("One.");
  }
});

test("/export writes the conversation, ctrl+o shows all of it with results [CLI-4]", async () => {
  const { pty, place } = await openConversation(
    [{ calls: [{ name: "Read", input: { file_path: "a.txt" } }] }, "Read it."],
    { words: ["read the file"], files: { "a.txt": "the only line\n" } },
  );
  await pty.shows("Read it.");
  await pty.isMissing("the only line");
  pty.type(keys.ctrlO);
  await pty.shows("the only line");
  pty.type(keys.escape);
  await pty.isMissing("the only line");
  pty.type(`/export${keys.enter}`);
  await pty.shows("Written to");
  const [file = ""] = readdirSync(place.cwd).filter((name) => name.startsWith("conversation-"));
  expect(readFileSync(join(place.cwd, file), "utf8")).toMatch(
    /read the file[\s\S]*the only line[\s\S]*Read it\./,
  );
});

test("ctrl+g writes the draft in the editor of the person [CLI-4]", async () => {
  const { pty } = await openConversation([], {
    files: { "edit.sh": 'printf "%s, edited" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n' },
    environment: { EDITOR: "sh ./edit.sh" },
  });
  await pty.shows("default");
  pty.type("my draft");
  await pty.shows("> my draft");
  pty.type("\u0007");
  await pty.shows("> my draft, edited");
  expect((await pty.all()).filter((line) => line.includes("my draft"))).toEqual(["> my draft, edited"]);
});

test("what cannot be meant is said, and nothing is sent [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["One."], { words: ["the first prompt"] });
  await pty.shows("One.");
  await pty.isMissing("esc to interrupt");
  for (const [typed, text] of [
    ["/hlep", "no command or skill /hlep. Did you mean /help?"],
    ["/xyzzy with words", "no command or skill /xyzzy. /help lists"],
    ["/clear now", '/clear takes nothing after its name; "now" was not sent'],
    ["/tasks nonsense", '/tasks takes nothing but "all"'],
    ["/mode nonsense", "There is no mode nonsense here"],
    ["/export /nonexistent/x.md", "Name another file."],
    ["/compact", "Nothing was compacted."],
    ["!", "write a command after the !"],
    ["#", "write a note after the #"],
  ] as const) {
    pty.type(typed);
    await pty.shows(`> ${typed}`);
    pty.type(keys.enter);
    await pty.shows(text);
  }
  expect(provider.requests).toHaveLength(1);
});

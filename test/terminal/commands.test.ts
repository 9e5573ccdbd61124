import { readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

test("/model changes the model, esc esc goes back to before a prompt, /clear begins anew and /resume returns, one after the other; what cannot be opened changes nothing [CLI-4]", async () => {
  const { pty, place, provider } = await openConversation(
    ["One.", "Two.", "Three.", "Other.", "New.", "Still here.", "Old again."],
    { words: ["the first prompt"] },
  );
  const isReady = (): Promise<void> => pty.isMissing("esc to interrupt");
  await pty.shows("One.");
  await isReady();
  pty.type(`/model haiku${keys.enter}`);
  await pty.shows("claude-haiku-5-5 ·");
  pty.type(`continue please${keys.enter}`);
  await pty.shows("Two.");
  await isReady();
  expect(provider.requests.at(-1)?.body["model"]).toBe("claude-haiku-5-5");
  expect(userTexts(provider)).toContain("the first prompt");
  pty.type(`/model no such model${keys.enter}`);
  await pty.shows("cannot be used");
  pty.type(`a bad third${keys.enter}`);
  await pty.shows("Three.");
  expect(userTexts(provider)).toContain("continue please");
  await isReady();

  pty.type(keys.escape);
  await pty.shows("esc again");
  pty.type(keys.escape);
  await pty.shows("Go back to before a prompt", "the first prompt", "continue please", "a bad third");
  pty.type(keys.enter);
  await pty.shows("\n> a bad third\n claude", "Two.");
  pty.type(` and better${keys.enter}`);
  await pty.shows("Other.");
  expect(userTexts(provider)).toContain("a bad third and better");
  expect(JSON.stringify(provider.requests.at(-1)?.request.messages)).not.toContain("Three.");
  await isReady();

  // One change of conversation after the other, each to its end: the last one counts, and one conversation is open.
  pty.type(`/clear${keys.enter}/fork${keys.enter}/clear${keys.enter}something else${keys.enter}`);
  const begun = async (): Promise<number> =>
    (await pty.all()).filter((line) => line.includes("A new conversation begins here.")).length;
  await expect.poll(begun, { timeout: 20_000 }).toBe(2);
  await pty.shows("New.");
  const files = (end: string): readonly string[] =>
    readdirSync(place.home, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(end));
  const [lock = "", ...others] = files(".jsonl.lock");
  expect(others).toEqual([]);
  expect(userTexts(provider)).not.toContain("the first prompt");
  await isReady();

  // A conversation that cannot be opened leaves this one open.
  pty.type(`/resume${keys.enter}`);
  await pty.shows("Conversations of this folder", "the first prompt", "something else");
  const hidden = files(".jsonl").filter((name) => !lock.startsWith(name));
  for (const name of hidden) renameSync(join(place.home, name), join(place.home, `${name}.hidden`));
  pty.type("first");
  await pty.isMissing("something else");
  pty.type(keys.enter);
  await pty.shows("No conversation found", "New.");
  for (const name of hidden) renameSync(join(place.home, `${name}.hidden`), join(place.home, name));
  pty.type(`are you there${keys.enter}`);
  await pty.shows("Still here.");
  expect(userTexts(provider)).toContain("something else");
  await isReady();

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

test("commands show their pages and give the conversation back; what cannot be meant is said; ctrl+o and /export show all [CLI-4]", async () => {
  const { pty, place, provider } = await openConversation(
    [{ calls: [{ name: "Read", input: { file_path: "a.txt" } }] }, "Read it."],
    { words: ["read the file"], files: { "a.txt": "the only line\n" } },
  );
  await pty.shows("Read it.");
  await pty.isMissing("esc to interrupt");
  for (const [command, title, text] of [
    ["context", "What fills the context window", "The window of claude-sonnet-5"],
    ["context", "What fills", "instructions, memory"],
    ["context", "What fills", "4 messages"],
    ["memory", "Instructions and memory", "CLAUDE.md"],
    ["cost", "What this conversation has cost", "MODEL"],
    ["cost", "What this conversation has cost", "AGENT"],
    ["inspect", "This conversation in figures", "read the file"],
    ["doctor", "Setup check", "Node"],
  ] as const) {
    pty.type(`/${command}${keys.enter}`);
    await pty.shows(title, text, "esc back");
    pty.type(keys.escape);
    await pty.isMissing("esc back");
    await pty.shows("Read it.");
  }
  await pty.isMissing("the only line");
  pty.type(keys.ctrlO);
  await pty.shows("the only line");
  pty.type(keys.escape);
  await pty.isMissing("the only line");
  for (const [typed, text] of [
    ["/hlep", "no command or skill /hlep. Did you mean /help?"],
    ["/xyzzy with words", "no command or skill /xyzzy. /help lists"],
    ["/clear now", '/clear takes nothing after its name; "now" was not sent'],
    ["/tasks nonsense", '/tasks takes nothing but "all"'],
    ["/mode nonsense", "Unknown mode nonsense"],
    ["/export /proc/none/x.md", "Name another file."],
    ["/compact", "Nothing was compacted."],
    ["!", "write a command after the !"],
    ["#", "write a note after the #"],
    ["/export", "Written to"],
    ["/export", "already exists"],
  ] as const) {
    pty.type(typed);
    await pty.shows(`> ${typed}`);
    pty.type(keys.enter);
    await pty.shows(text);
  }
  expect(provider.requests).toHaveLength(2);
  pty.type(`/mode${keys.enter}`);
  await pty.shows("Permission mode", "asks before it edits or runs · in use", "only reads");
  pty.type(`plan${keys.enter}`);
  await pty.shows("claude-sonnet-5 · plan");
  // Other words for a command.
  pty.type(`/settings${keys.enter}`);
  await pty.shows("Your settings");
  pty.type(keys.escape);
  await pty.isMissing("Your settings");
  pty.type(`/export page.html${keys.enter}`);
  await pty.shows("Written to page.html.");
  const page = readFileSync(join(place.cwd, "page.html"), "utf8");
  expect(page).toMatch(/^<!DOCTYPE html>[\s\S]*Content-Security-Policy[\s\S]*the only line/);
  const [file = ""] = readdirSync(place.cwd).filter((name) => name.startsWith("conversation-"));
  expect(readFileSync(join(place.cwd, file), "utf8")).toMatch(
    /read the file[\s\S]*the only line[\s\S]*Read it\./,
  );
});

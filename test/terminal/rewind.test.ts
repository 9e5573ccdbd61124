import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

test("/rewind puts files back with the conversation, from the copy and in the next start too; or the files alone [CLI-4]", async () => {
  const write = (content: string) => ({
    calls: [{ name: "Write", input: { file_path: "a.txt", content } }],
  });
  const { pty, place, again, provider } = await openConversation(
    [
      write("one\n"),
      "First.",
      write("two\n"),
      "Second.",
      "Again.",
      { calls: [{ name: "Read", input: { file_path: "a.txt" } }] },
      write("three\n"),
      "Third.",
      "Last.",
    ],
    { words: ["--permission-mode", "acceptEdits", "write one"] },
  );
  const file = join(place.cwd, "a.txt");
  const read = (): string => (existsSync(file) ? readFileSync(file, "utf8") : "");
  const isReady = (screen = pty): Promise<void> => screen.isMissing("esc to interrupt");
  await pty.shows("First.");
  await isReady();
  pty.type(`write two${keys.enter}`);
  await pty.shows("Second.");
  await isReady();
  expect(read()).toBe("two\n");

  pty.type(`/rewind${keys.enter}`);
  await pty.shows("Go back to before a prompt", "write one", "write two", "1 file · just now");
  pty.type(keys.enter);
  await pty.shows("What goes back", "the conversation, and the files: a.txt", "+1 −1");
  pty.type(keys.enter);
  await pty.shows("Put back: a.txt.", "> write two");
  await expect.poll(read, { timeout: 20_000 }).toBe("one\n");
  pty.type(` no, say it${keys.enter}`);
  await pty.shows("Again.");
  await isReady();

  pty.type(`write three${keys.enter}`);
  await pty.shows("Third.");
  await isReady();
  pty.type(`/rewind${keys.enter}`);
  await pty.shows("Go back to before a prompt", "write three");
  pty.type(keys.enter);
  await pty.shows("What goes back");
  pty.type(`files;${keys.enter}`);
  await expect.poll(read, { timeout: 20_000 }).toBe("one\n");
  await pty.shows("Third.", "Put back: a.txt.");
  pty.type(`what now${keys.enter}`);
  await pty.shows("Last.");
  expect(userTexts(provider)).toContain("The person put these files back");
  await isReady();
  pty.type(keys.ctrlD);
  await pty.exited;

  // The prompts of the copy know what the file was before those of the conversation it was copied from.
  const next = again(["--continue"]);
  await next.shows("Last.");
  await next.isMissing("being opened");
  next.type(`/rewind${keys.enter}`);
  await next.shows("Go back to before a prompt", "write one");
  next.type(`write one${keys.enter}`);
  await next.shows("What goes back");
  next.type(keys.enter);
  await next.shows("> write one", "Put back: a.txt.");
  await expect.poll(() => existsSync(file), { timeout: 20_000 }).toBe(false);
});

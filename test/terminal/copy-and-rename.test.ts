import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

test("/copy puts the last answer into the clipboard, /rename gives a title that /resume shows, /init asks for CLAUDE.md [CLI-4]", async () => {
  const { pty, provider } = await openConversation(["The **answer**.", "Written."], { words: ["ask me"] });
  await pty.shows("The answer.");
  await pty.isMissing("esc to interrupt");
  pty.type(`/copy${keys.enter}`);
  await pty.shows("copied 1 line");
  expect(pty.bytes()).toContain(`\u001b]52;c;${Buffer.from("The **answer**.").toString("base64")}\u0007`);
  pty.type(`/rename Questions of the day${keys.enter}`);
  await pty.shows("The conversation is called Questions of the day.");
  pty.type(`/resume${keys.enter}`);
  await pty.shows("Conversations of this folder", "Questions of the day");
  pty.type(keys.escape);
  await pty.isMissing("Conversations of this folder");
  pty.type(`/rename${keys.enter}`);
  await pty.shows("Write the title after /rename.");
  pty.type(`/init${keys.enter}`);
  await pty.shows("Written.");
  expect(userTexts(provider)).toContain("write CLAUDE.md");
});

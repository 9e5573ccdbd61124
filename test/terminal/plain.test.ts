import { existsSync } from "node:fs";
import { join } from "node:path";
import { becomes } from "@retinue/testing/becomes.ts";
import type { ScriptedStep } from "@retinue/testing/script.ts";
import { expect, test } from "vitest";
import { keys, openConversation } from "./pty-stage.ts";

test("with --plain the conversation is lines alone, and questions are answered by name [CLI-4]", async () => {
  const { pty, place } = await openConversation(
    [
      { text: "I **make** it.", calls: [{ name: "Bash", input: { command: "touch made '\u001b[2Jsafe'" } }] },
      "Done.",
    ],
    { words: ["--plain"] },
  );
  await pty.shows("The mode is default.");
  pty.type(`make it${keys.enter}`);
  await pty.shows("I make it.", "Question: main asks to use Bash:", "touch made '\\u001b[2Jsafe'", "/yes");
  // A line that was meant as a message is one.
  pty.type(`1${keys.enter}`);
  pty.type(`/yes${keys.enter}`);
  await pty.shows("Done.", "Ready.");
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
  expect(pty.bytes()).not.toContain("\u001b");
  for (const [typed, text] of [
    ["/config", "/config needs the screen"],
    ["/rename my work", "The conversation is called my work."],
    ["/export out.md", "Written to out.md."],
  ]) {
    pty.type(`${typed}${keys.enter}`);
    await pty.shows(text ?? "");
  }
  expect(existsSync(join(place.cwd, "out.md"))).toBe(true);
  pty.type(`/quit${keys.enter}`);
  expect(await pty.exited).toEqual({ code: 0 });
  expect((await pty.all()).at(-1)).toContain("Continue: retinue --resume");
});

test("with TERM=dumb it is the same, and of several questions each is read out before it can be answered [CLI-4]", async () => {
  const child = (name: string): ScriptedStep => ({
    match: ({ messages: [first] }) => JSON.stringify(first).includes(`child task ${name}`),
    times: "any",
    respond: ({ messages }) =>
      messages.length > 1 ? "ended" : { calls: [{ name: "Bash", input: { command: `touch ${name}` } }] },
  });
  const start = (name: string) => ({
    name: "Agent",
    input: { description: name, prompt: `child task ${name}`, subagent_type: "general-purpose" },
  });
  const { pty, place } = await openConversation(
    [child("one"), child("two"), { calls: [start("one"), start("two")] }, "Both are back."],
    { words: ["start two"], environment: { TERM: "dumb" } },
  );
  const made = (): number => ["one", "two"].filter((name) => existsSync(join(place.cwd, name))).length;
  await pty.shows("2 questions are waiting");
  pty.type(`/yes${keys.enter}/yes${keys.enter}`);
  await pty.shows("touch one", "touch two");
  // The second answer came before anybody could have read the second question.
  await becomes(() => made() === 1);
  await expect
    .poll(
      () => {
        pty.type(`/yes${keys.enter}`);
        return made();
      },
      { interval: 400, timeout: 30_000 },
    )
    .toBe(2);
  await pty.hasShown("Both are back.");
  expect(pty.bytes()).not.toContain("\u001b");
});

import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { keys, openConversation } from "./pty-stage.ts";

describe.each([
  ["--plain", ["--plain"], {}],
  ["TERM=dumb", [], { TERM: "dumb" }],
] as const)("with %s", (_, words, environment) => {
  test("the conversation is lines alone, and questions are answered by name [CLI-4]", async () => {
    const { pty, place } = await openConversation(
      [{ text: "I **make** it.", calls: [{ name: "Bash", input: { command: "touch made" } }] }, "Done."],
      { words, environment },
    );
    await pty.shows("The mode is default.");
    pty.type(`make it${keys.enter}`);
    await pty.shows("I make it.", "Question: main asks to use Bash:", "touch made", "/yes");
    // A line that was meant as a message is one.
    pty.type(`1${keys.enter}`);
    pty.type(`/yes${keys.enter}`);
    await pty.shows("Done.", "Ready.");
    expect(existsSync(join(place.cwd, "made"))).toBe(true);
    expect(pty.bytes()).not.toContain("\u001b");
    pty.type(`/quit${keys.enter}`);
    expect(await pty.exited).toEqual({ code: 0 });
    expect((await pty.all()).at(-1)).toContain("Continue: retinue --resume");
  });
});

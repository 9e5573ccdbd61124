import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation } from "./pty-stage.ts";

test("-p on a terminal shows agents and asks; it closes with what it took [CLI-4]", async () => {
  const { pty, place } = await openConversation(
    [
      { match: "child task", times: "any", text: "child is done" },
      {
        calls: [
          {
            name: "Agent",
            input: { description: "look around", prompt: "child task", subagent_type: "general-purpose" },
          },
          { name: "Bash", input: { command: "touch made" } },
        ],
      },
      "All **done**.",
    ],
    { words: ["-p", "do it"] },
  );
  await pty.shows("1 yes");
  await pty.takesAnswers();
  pty.type("1");
  expect(await pty.exited).toEqual({ code: 0 });
  const lines = await pty.all();
  expect(lines).toContain("All done.");
  expect(lines.join("\n")).toContain("✓ general-purpose look around");
  expect(lines.at(-1)).toMatch(/^1 agent · \d+ s · \$[\d.]+ · retinue inspect [0-9a-f-]{36}$/);
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
});

test("--no-ask refuses what would be asked [CLI-4]", async () => {
  const { pty, place } = await openConversation(
    [{ calls: [{ name: "Bash", input: { command: "touch made" } }] }, "Not done."],
    { words: ["-p", "do it", "--no-ask"] },
  );
  expect(await pty.exited).toEqual({ code: 0 });
  expect((await pty.all()).join("\n")).toMatch(/not run: .*no one can be asked here[\s\S]*Not done\./);
  expect(existsSync(join(place.cwd, "made"))).toBe(false);
});

test("ctrl+c ends a run with -p with 130, also in an open question, and the terminal is clean [CLI-4]", async () => {
  const { pty } = await openConversation([{ calls: [{ name: "Bash", input: { command: "touch made" } }] }], {
    words: ["-p", "wait for it"],
  });
  await pty.shows("1 yes");
  pty.type(keys.ctrlC);
  expect(await pty.exited).toEqual({ code: 130 });
  expect((await pty.all()).join("\n")).toContain("Interrupted");
});

test("in CI nothing is painted and nobody is asked, also on a terminal [CLI-1]", async () => {
  const { pty } = await openConversation(
    [{ calls: [{ name: "Bash", input: { command: "touch made" } }] }, "Plain answer."],
    { words: ["-p", "go"], environment: { CI: "true" } },
  );
  expect(await pty.exited).toEqual({ code: 0 });
  expect((await pty.all()).at(-1)).toBe("Plain answer.");
  expect(pty.bytes()).not.toContain("\u001b[?");
});

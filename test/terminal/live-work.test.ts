import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation } from "./pty-stage.ts";

test("a command of the agent shows the end of its output while it runs, and more of it with ctrl+o [CLI-4]", async () => {
  const command =
    "for i in 1 2 3 4 5 6 7; do echo line-$i; done; until [ -e go ]; do sleep 0.05; done; echo over";
  const { pty, place } = await openConversation(
    [{ calls: [{ name: "Bash", input: { command, description: "count" } }] }, "Counted."],
    { words: ["--allowedTools", "Bash", "--permission-mode", "default", "count the lines"] },
  );
  await pty.shows("line-7", "line-4");
  const live = (await pty.screen()).filter((line) => /^ {2}line-\d/.test(line));
  expect(live).toEqual(["  line-4", "  line-5", "  line-6", "  line-7"]);
  pty.type(keys.ctrlO);
  await pty.shows("Conversation", "    line-1", "    line-7");
  pty.type(keys.escape);
  await pty.isMissing("line-1");
  writeFileSync(join(place.cwd, "go"), "");
  await pty.shows("Counted.");
  await pty.isMissing("line-4");
});

test("steps that are done and agents that ended stay in the scrollback as one line each, and /tasks knows the agents after --continue [CLI-3, CLI-4]", async () => {
  const todo = (first: string, second: string) => ({
    name: "TodoWrite",
    input: {
      todos: [
        { content: "Read the code", activeForm: "Reading the code", status: first },
        { content: "Fix the bug", activeForm: "Fixing the bug", status: second },
      ],
    },
  });
  const agent = {
    name: "Agent",
    input: { description: "look around", prompt: "child task", subagent_type: "general-purpose" },
  };
  const { pty, again } = await openConversation(
    [
      { calls: [todo("in_progress", "pending")] },
      { calls: [todo("completed", "in_progress")] },
      { calls: [agent] },
      { match: "child task", text: "child is done" },
      { calls: [todo("completed", "completed")] },
      "All done.",
    ],
    { words: ["do it"] },
  );
  await pty.shows("All done.");
  await pty.isMissing("esc to interrupt");
  const rows = (await pty.all())
    .filter((line) => /^(☒|✓) /.test(line))
    .map((line) => line.slice(0, 30).trim());
  expect(rows.map((row) => row.replace(/ {2}.*/, ""))).toEqual([
    "☒ Read the code",
    "✓ general-purpose look around",
    "☒ Fix the bug",
  ]);
  pty.type(keys.ctrlD);
  await pty.exited;

  const next = again(["--continue"]);
  await next.shows("✓ general-purpose look around  child is done", "All done.");
  await expect
    .poll(
      async () => {
        next.type(`/tasks${keys.enter}`);
        await next.shows("Agents of this conversation");
        const found = (await next.screen()).join("\n").includes("general-purpose  look around");
        if (!found) next.type(keys.escape);
        if (!found) await next.isMissing("Agents of this conversation");
        return found;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  next.type(keys.enter);
  await next.shows("child is done", "r resume with a message");
});

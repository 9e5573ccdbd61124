import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation } from "./pty-stage.ts";

const statusLine = (command: string): string =>
  JSON.stringify({ statusLine: { type: "command", command, padding: 1 } });

test("the command of statusLine reads the conversation as JSON, and its first line is below the draft [CLI-4]", async () => {
  const { place, pty, again } = await openConversation(["Done."], {
    words: ["go on"],
    columns: 80,
    rows: 24,
  });
  await pty.shows("Done.");
  pty.type(keys.ctrlD);
  await pty.exited;
  mkdirSync(join(place.home, ".claude"), { recursive: true });
  const command =
    'cat > $$.json && mv $$.json input.json && grep -o \'"display_name":"[^"]*"\' input.json; echo second';
  writeFileSync(join(place.home, ".claude/settings.json"), statusLine(command));
  const next = again();
  await next.shows('  "display_name":"');
  const screen = await next.screen();
  expect(screen.at(-1)).toContain("display_name");
  expect(screen.join("\n")).not.toContain("second");
  const read = JSON.parse(readFileSync(join(place.cwd, "input.json"), "utf8"));
  expect(read).toMatchObject({
    cwd: place.cwd,
    workspace: { current_dir: place.cwd, project_dir: place.cwd },
    cost: { total_cost_usd: 0 },
    context_window: { used_percentage: 0 },
  });
  expect(read.transcript_path).toContain(read.session_id);
});

test("one that a project brings runs only when the folder is trusted [CLI-4, PRM-11]", async () => {
  const files = { ".claude/settings.json": statusLine("touch ran; echo shown in green") };
  const { place, pty } = await openConversation(["Done."], { files });
  await pty.shows("Do you trust", "statusLine");
  await pty.takesAnswers();
  pty.type("n");
  await pty.shows("folder not trusted", "default");
  pty.type(`go${keys.enter}`);
  await pty.shows("Done.");
  expect(existsSync(join(place.cwd, "ran"))).toBe(false);
  pty.type(`/trust${keys.enter}`);
  await pty.shows("1 yes, trust this folder");
  await pty.takesAnswers();
  pty.type("y");
  await pty.shows("shown in green");
});

test("one that fails is named once, and the conversation goes on without it [CLI-4]", async () => {
  const { pty } = await openConversation(["First.", "Second."], {
    words: ["go on"],
    columns: 140,
    files: { ".claude/settings.local.json": statusLine("echo oh no >&2; exit 3") },
  });
  await pty.shows("1 yes, trust this folder");
  await pty.takesAnswers();
  pty.type("y");
  await pty.shows("First.", "The command of the setting statusLine ended with 3 (oh no).");
  pty.type(`once more${keys.enter}`);
  await pty.shows("Second.");
  expect((await pty.all()).filter((line) => line.includes("the setting statusLine"))).toHaveLength(1);
});

import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readRuleLine } from "../../packages/hosts/src/terminal/app/open-managers.ts";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

const ctrlE = "\u0005";
const ctrlN = "\u000e";
const ctrlX = "\u0018";

const agent = `---
name: reviewer
description: Reviews changes. Use after edits.
---
Review.
`;

test("/permissions adds a rule with its list and scope, which holds for the next call, and removes it [CLI-4, PRM-8]", async () => {
  const call = { calls: [{ name: "Bash", input: { command: "touch made.txt" } }] };
  const { pty, place } = await openConversation([call, "Made.", call, "Refused."], {
    words: ["--settings", "{}"],
  });
  await pty.shows("? keys");
  pty.type(`/permissions${keys.enter}`);
  await pty.shows("Permission rules", "There are no rules", "ctrl+n add");
  pty.type(ctrlN);
  await pty.shows("allow, ask or deny");
  pty.type(`\u0015allow Bash(touch *) user${keys.enter}`);
  await pty.shows("allow  Bash(touch *)", "~/.claude/settings.json");
  const file = join(place.home, ".claude/settings.json");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ permissions: { allow: ["Bash(touch *)"] } });
  pty.type(ctrlN);
  await pty.shows("allow, ask or deny");
  pty.type(`\u0015allow Bash(${keys.enter}`);
  await pty.shows("is not valid");
  pty.type(keys.escape);
  await pty.isMissing("Permission rules");
  pty.type(`make it${keys.enter}`);
  await pty.shows("Made.");
  await pty.isMissing("esc to interrupt");
  pty.type(`/permissions${keys.enter}`);
  await pty.shows("allow  Bash(touch *)");
  pty.type(ctrlX);
  await pty.shows("There are no rules");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ permissions: { allow: [] } });
  pty.type(keys.escape);
  await pty.isMissing("Permission rules");
  pty.type(`again${keys.enter}`);
  await pty.shows("no allow rule matches touch made.txt");
  expect((await pty.all()).join("\n")).not.toContain("A new conversation");
});

test("/agents puts an agent into the draft, makes and edits one in $EDITOR, and switches it off and on [CLI-4]", async () => {
  const { pty, place, provider } = await openConversation(["Reviewed."], {
    files: {
      ".claude/agents/reviewer.md": agent,
      "edit.sh": '#!/bin/sh\nsed -i "s/^description: .*/description: Counts lines. Use to count./" "$1"\n',
    },
    environment: { EDITOR: "./edit.sh" },
  });
  chmodSync(join(place.cwd, "edit.sh"), 0o755);
  await pty.shows("? keys");
  pty.type(`/agents${keys.enter}`);
  await pty.shows("Agents", "Reviews changes.", "general-purpose");
  pty.type(ctrlN);
  await pty.shows("the name of the new agent");
  pty.type(`line-counter${keys.enter}`);
  await pty.shows("Counts lines.");
  expect(readFileSync(join(place.cwd, ".claude/agents/line-counter.md"), "utf8")).toContain("Counts lines.");
  pty.type("reviewer");
  await pty.isMissing("line-counter");
  pty.type(ctrlX);
  await pty.shows("switched off");
  const local = join(place.cwd, ".claude/settings.local.json");
  expect(JSON.parse(readFileSync(local, "utf8"))).toMatchObject({
    permissions: { deny: ["Agent(reviewer)"] },
  });
  pty.type(ctrlX);
  await pty.shows("inherit · project");
  pty.type(ctrlE);
  await pty.isMissing("Reviews changes.");
  await pty.shows("Counts lines.");
  pty.type(keys.enter);
  await pty.shows("> @agent-reviewer");
  pty.type(`look at it${keys.enter}`);
  await pty.shows("Reviewed.");
  expect(userTexts(provider)).toContain("@agent-reviewer look at it");
});

test("/hooks switches hooks off and on, /mcp does so with servers, /skills puts a skill into the draft [CLI-4]", async () => {
  const hooks = { Stop: [{ hooks: [{ type: "command", command: "touch stopped.txt" }] }] };
  const { pty, place } = await openConversation(["One.", "Two."], {
    words: ["--trust", "--mcp-config", '{"mcpServers":{"notes":{"command":"false"}}}'],
    files: {
      ".claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets people.\n---\nGreet.\n",
      ".claude/settings.json": JSON.stringify({ hooks }),
      "edit.sh": '#!/bin/sh\nsed -i "s/^description: .*/description: Takes leave./" "$1"\n',
    },
    environment: { EDITOR: "sh edit.sh" },
  });
  const local = (): unknown =>
    JSON.parse(readFileSync(join(place.cwd, ".claude/settings.local.json"), "utf8"));
  await pty.shows("? keys");
  pty.type(`/hooks${keys.enter}`);
  await pty.shows("Hooks of settings", "Stop  touch stopped.txt");
  pty.type(ctrlX);
  await pty.shows("off  Stop");
  expect(local()).toMatchObject({ disableAllHooks: true });
  pty.type(keys.escape);
  await pty.isMissing("Hooks of settings");
  pty.type(`say one${keys.enter}`);
  await pty.shows("One.");
  await pty.isMissing("esc to interrupt");
  expect(existsSync(join(place.cwd, "stopped.txt"))).toBe(false);
  pty.type(`/hooks${keys.enter}`);
  await pty.shows("off  Stop");
  pty.type(ctrlX);
  await pty.isMissing("off  Stop");
  pty.type(keys.escape);
  await pty.isMissing("Hooks of settings");
  pty.type(`say two${keys.enter}`);
  await pty.shows("Two.");
  await expect.poll(() => existsSync(join(place.cwd, "stopped.txt")), { timeout: 20_000 }).toBe(true);
  await pty.isMissing("esc to interrupt");

  pty.type(`/mcp${keys.enter}`);
  await pty.shows("MCP servers", "notes", "ctrl+r reconnect all");
  pty.type(ctrlX);
  await expect.poll(local, { timeout: 20_000 }).toMatchObject({ permissions: { deny: ["mcp__notes"] } });
  pty.type(keys.escape);
  await pty.isMissing("reconnect all");
  pty.type(`/skills${keys.enter}`);
  await pty.shows("Skills", "greet  Greets people.");
  pty.type(ctrlN);
  await pty.shows("the name of the new skill");
  pty.type(`../out${keys.enter}`);
  await pty.shows('The name "../out" cannot be used.');
  pty.type(`${ctrlN}\u0015part${keys.enter}`);
  await pty.shows("part   Takes leave.");
  expect(readFileSync(join(place.cwd, ".claude/skills/part/SKILL.md"), "utf8")).toContain("Takes leave.");
  pty.type(`greet${keys.enter}`);
  await pty.shows("> /greet");
});

test("in a window of 80 columns lists show all their keys, and pages and help keep their columns [CLI-4]", async () => {
  const { pty, place } = await openConversation([], { columns: 80, rows: 24 });
  await pty.shows("default");
  pty.type(`/mcp${keys.enter}`);
  // Keys that need a server are not shown without one.
  await pty.shows("type to narrow", "Ctrl+N adds one", "ctrl+n add · ctrl+r reconnect all · esc back");
  pty.type(`${ctrlN}docs http://127.0.0.1:9/mcp${keys.enter}`);
  await pty.shows("docs  ", "ctrl+l log in/out", "ctrl+x off/on", "esc back");
  const { projects } = JSON.parse(readFileSync(join(place.home, ".claude.json"), "utf8"));
  expect(Object.values(projects)).toMatchObject([
    { mcpServers: { docs: { type: "http", url: "http://127.0.0.1:9/mcp" } } },
  ]);
  pty.type(keys.escape);
  await pty.isMissing("esc back");
  pty.type("?");
  await pty.shows("  shift+enter, alt+enter, ctrl+j, \\ enter\n                          new line\n");
  pty.type(keys.escape);
  await pty.isMissing("esc back");
  pty.type(`/workflows${keys.enter}`);
  await pty.shows("Saved workflows", "\n    keep what holds\n");
});

describe("a rule as people write it in a line", () => {
  test.each([
    ["Bash(npm test *)", "allow", "Bash(npm test *)", "local"],
    ["deny Read(.env) project", "deny", "Read(.env)", "project"],
    ["ask Bash(git push user)", "ask", "Bash(git push user)", "local"],
  ])("%s", (text, list, rule, scope) => {
    expect(readRuleLine(text)).toEqual({ type: "add-rule", list, rule, scope });
  });
});

import { Command } from "commander";
import { expect, test } from "vitest";
import { addAgentSdkOptions } from "../../src/apps/agent-sdk/agent-sdk-options.ts";
import { addOptions } from "../../src/apps/cli/program/command-entry.ts";
import { runOptions, sessionOptions } from "../../src/apps/cli/program/run-options.ts";

/** The flags that `claude --help` of version 2.1.325 lists. */
const flags = [
  "--add-dir",
  "--agent",
  "--agents",
  "--allow-dangerously-skip-permissions",
  "--allowed-tools",
  "--allowedTools",
  "--append-system-prompt",
  "--autocompact",
  "--ax-screen-reader",
  "--background",
  "--bare",
  "--betas",
  "--bg",
  "--brief",
  "--chrome",
  "--cloud",
  "--continue",
  "--dangerously-skip-permissions",
  "--debug",
  "--debug-file",
  "--desktop",
  "--disable-slash-commands",
  "--disallowed-tools",
  "--disallowedTools",
  "--effort",
  "--environment",
  "--exclude-dynamic-system-prompt-sections",
  "--fallback-model",
  "--file",
  "--fork-session",
  "--forward-subagent-text",
  "--from-pr",
  "--help",
  "--ide",
  "--include-hook-events",
  "--include-partial-messages",
  "--input-format",
  "--json-schema",
  "--max-budget-usd",
  "--mcp-config",
  "--model",
  "--name",
  "--no-chrome",
  "--no-session-persistence",
  "--output-format",
  "--permission-mode",
  "--permission-prompt-tool",
  "--permission-prompts",
  "--plugin-dir",
  "--plugin-url",
  "--print",
  "--prompt-suggestions",
  "--remote-control",
  "--remote-control-session-name-prefix",
  "--replay-user-messages",
  "--restricted",
  "--resume",
  "--safe-mode",
  "--session-id",
  "--setting-sources",
  "--settings",
  "--strict-mcp-config",
  "--system-prompt",
  "--system-prompt-snapshot",
  "--teleport",
  "--tmux",
  "--tools",
  "--verbose",
  "--version",
  "--worktree",
];

/** Those that the program itself answers. */
const ofProgram = ["--help", "--version", "--print"];

test("every flag of the other engine's help is known here [DRP-3]", () => {
  const program = new Command();
  addOptions(program, [...sessionOptions, ...runOptions]);
  addAgentSdkOptions(program);
  const known = new Set(program.options.flatMap(({ flags: text }) => text.match(/--[A-Za-z-]+/g) ?? []));
  expect(flags.filter((flag) => !known.has(flag) && !ofProgram.includes(flag))).toEqual([]);
});

import { describe, expect, it } from "vitest";
import { commandRights } from "../../foundation/command-rights.ts";
import { splitUsage } from "../cli/program/command-entry.ts";
import { projectCommands } from "../cli/program/project-commands.ts";
import { sessionCommands } from "../cli/program/session-commands.ts";
import type { SessionOptions } from "./command-context.ts";
import { checkOptionValues, longName } from "./option-entry.ts";
import type { PrintOptions } from "./print-options.ts";
import { runOptions, sessionOptions } from "./run-options.ts";

const all = [...sessionOptions, ...runOptions];

describe("options are checked by their table", () => {
  it.each<[Record<string, unknown>, string, string | undefined]>([
    [
      { effort: "hihg" },
      'Invalid --effort "hihg".',
      "Did you mean high? Write one of low, medium, high, xhigh, max.",
    ],
    [
      { permissionMode: "acceptedits" },
      'Invalid --permission-mode "acceptedits".',
      "Did you mean acceptEdits? Write one of default, acceptEdits, plan, dontAsk, bypassPermissions, delegate.",
    ],
    [{ outputFormat: "xml" }, 'Invalid --output-format "xml".', "Write one of text, json, stream-json."],
    [{ approvals: "wiat" }, 'Invalid --approvals "wiat".', "Did you mean wait? Write one of wait, refuse."],
    [{ maxTurns: "0" }, '--max-turns needs a whole number from 1, but got "0".', undefined],
    [{ maxTurns: " " }, '--max-turns needs a whole number from 1, but got " ".', undefined],
    [{ maxBudgetUsd: "-1" }, '--max-budget-usd needs an amount above 0, but got "-1".', undefined],
    [{ maxTime: "10x" }, '--max-time needs a duration such as 90s, 10m or 1h30m, but got "10x".', undefined],
    [
      { systemPrompt: "a", systemPromptFile: "b" },
      "--system-prompt and --system-prompt-file cannot be given together.",
      undefined,
    ],
    [
      { replayUserMessages: true, outputFormat: "json" },
      "--replay-user-messages has no meaning without --output-format stream-json.",
      undefined,
    ],
  ])("%j is refused in one sentence, with the closest match [CLI-6]", (values, message, advice) => {
    const misuse = expect.objectContaining({ code: "misuse", message, advice });
    expect(() => checkOptionValues(all, values)).toThrow(misuse);
  });

  it.each<Record<string, unknown>>([
    {},
    { permissionMode: "manual", effort: "max", maxTime: "1h30m", maxTurns: "3", maxBudgetUsd: "0.5" },
    { outputFormat: "stream-json", includePartialMessages: true, ask: true, sessionPersistence: false },
  ])("%j is good", (values) => {
    expect(() => checkOptionValues(all, values)).not.toThrow();
  });

  it("names only options that exist in needs and conflicts", () => {
    const commands = [...projectCommands, ...sessionCommands].map(({ options = [] }) => options);
    for (const options of [all, ...commands]) {
      const known = options.map((option) => longName(option));
      const named = options.flatMap(({ needs = [], conflicts = [] }) => [
        ...needs.map(({ option }) => option),
        ...conflicts,
      ]);
      expect(named.filter((name) => !known.includes(name))).toEqual([]);
    }
  });

  it("every option of a run has a reader, and every reader an option", () => {
    const given: Record<keyof (PrintOptions & SessionOptions), true> = {
      agents: true,
      settings: true,
      settingSources: true,
      pluginDir: true,
      addDir: true,
      disallowedTools: true,
      mcpConfig: true,
      strictMcpConfig: true,
      trust: true,
      verbose: true,
      print: true,
      outputFormat: true,
      inputFormat: true,
      includePartialMessages: true,
      replayUserMessages: true,
      forwardSubagentText: true,
      model: true,
      effort: true,
      agent: true,
      tools: true,
      allowedTools: true,
      permissionMode: true,
      permissionPromptTool: true,
      dangerouslySkipPermissions: true,
      maxTurns: true,
      maxBudgetUsd: true,
      maxTime: true,
      systemPrompt: true,
      systemPromptFile: true,
      appendSystemPrompt: true,
      appendSystemPromptFile: true,
      appendSubagentSystemPrompt: true,
      appendSubagentSystemPromptFile: true,
      resume: true,
      continue: true,
      forkSession: true,
      takeOver: true,
      sessionId: true,
      sessionPersistence: true,
      jsonSchema: true,
      disableSlashCommands: true,
      plain: true,
      ask: true,
      approvals: true,
    };
    const attribute = (name: string) =>
      name.replace(/^--(no-)?/, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const ours = Object.keys(given).filter((name) => !name.startsWith("appendSubagent"));
    expect(all.map((option) => attribute(longName(option))).sort()).toEqual(ours.sort());
  });
});

it("every command is listed with who may run it, and no other is", () => {
  const paths = [...projectCommands, ...sessionCommands].map(({ usage }) => splitUsage(usage).path.join(" "));
  expect(Object.keys(commandRights).sort()).toEqual(paths.sort());
});

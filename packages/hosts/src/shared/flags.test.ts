import { commandRights } from "@retinue/base/foundation/command-rights.ts";
import { Option } from "commander";
import { describe, expect, it } from "vitest";
import { splitUsage } from "../cli/program/command-entry.ts";
import { projectCommands } from "../cli/program/project-commands.ts";
import { sessionCommands } from "../cli/program/session-commands.ts";
import { checkOptionValues } from "./add-options.ts";
import {
  commandFlags,
  folderOptionsOf,
  plannedFlag,
  programFlags,
  runFlags,
  runtimeOptionsOf,
  sessionOptionsOf,
  strayFlag,
} from "./flags.ts";
import { longName } from "./option-entry.ts";

const all = [...Object.values(commandFlags), ...Object.values(runFlags)];

describe("options are checked by their table", () => {
  it.each<[Record<string, unknown>, string, string | undefined]>([
    [
      { effort: "hihg" },
      'Invalid --effort "hihg".',
      "Did you mean high? Expected one of low, medium, high, xhigh, max.",
    ],
    [
      { permissionMode: "acceptedits" },
      'Invalid --permission-mode "acceptedits".',
      "Did you mean acceptEdits? Expected one of default, acceptEdits, plan, dontAsk, bypassPermissions, delegate.",
    ],
    [{ outputFormat: "xml" }, 'Invalid --output-format "xml".', "Expected one of text, json, stream-json."],
    [
      { approvals: "wiat" },
      'Invalid --approvals "wiat".',
      "Did you mean wait? Expected one of wait, refuse.",
    ],
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

  it("keys are the names under which the parser keeps the values", () => {
    for (const [name, { flags }] of Object.entries({ ...commandFlags, ...runFlags, ...programFlags }))
      expect(new Option(flags).attributeName()).toBe(name);
  });
});

describe("what flags mean", () => {
  it("to a session, in a folder", () => {
    const flags = { model: "opus", maxTime: "10m", disableSlashCommands: true, ask: true } as const;
    expect(sessionOptionsOf(flags, "/")).toEqual({
      model: "opus",
      limits: { tree: { seconds: 600 } },
      slashCommands: false,
    });
  });

  it("to the project of a folder and to a runtime", () => {
    expect(folderOptionsOf({ pluginDir: ["p"], trust: true, agents: "{}" })).toEqual({
      pluginDirectories: ["p"],
      trusted: true,
    });
    expect(runtimeOptionsOf({ sessionPersistence: false, approvals: "wait", betas: ["a,b"] }, {})).toEqual({
      transcripts: false,
      approvals: "inbox",
      env: { ANTHROPIC_CUSTOM_HEADERS: "anthropic-beta: a,b" },
    });
  });

  it.each([
    [{ model: "opus" }, undefined, undefined, "--model"],
    [{ resume: "x" }, "--resume", "--resume", "--resume"],
    [{ effort: "high" }, undefined, "--effort", "--effort"],
    [{ ask: true, verbose: true }, undefined, undefined, undefined],
    [{ ask: false }, "--no-ask", "--no-ask", undefined],
    [{ settings: "{}" }, "--settings", undefined, undefined],
  ] as const)("%j holds on workers except %s, in a server except %s, and is decided by a plan: %s", (given, store, server, plan) => {
    expect([strayFlag(given, "store"), strayFlag(given, "mcp-server"), plannedFlag(given)]).toEqual([
      store,
      server,
      plan,
    ]);
  });
});

it("every command is listed with who may run it, and no other is", () => {
  const paths = [...projectCommands, ...sessionCommands].map(({ usage }) => splitUsage(usage).path.join(" "));
  expect(Object.keys(commandRights).sort()).toEqual(paths.sort());
});

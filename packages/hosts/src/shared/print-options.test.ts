import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { checkOptionValues } from "./add-options.ts";
import { type RunFlags, runFlags } from "./flags.ts";
import { readPrintOptions } from "./print-options.ts";

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "print-options-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "prompt.md"), "You are a parrot.\n");
  writeFileSync(join(folder, "schema.json"), '{"type": "object"}');
  return folder;
}

function read(options: RunFlags, words: readonly string[] = ["hi"], disallowedTools?: readonly string[]) {
  const session = disallowedTools === undefined ? {} : { disallowedTools };
  checkOptionValues(Object.values(runFlags), { ...options });
  return readPrintOptions(options, { words, cwd: createFolder(), session });
}

describe("the options of retinue -p [CLI-1]", () => {
  it("are text in and text out, with nothing asked of the session, where none is given", () => {
    expect(read({})).toEqual({
      output: "text",
      input: "text",
      partial: false,
      replay: false,
      childText: false,
      verbose: false,
      session: {},
    });
  });

  it.each<[RunFlags, object]>([
    [
      { model: "opus", effort: "high", agent: "reviewer" },
      { model: "opus", effort: "high", agent: "reviewer" },
    ],
    [{ tools: "Read, Grep" }, { tools: ["Read", "Grep"] }],
    [{ tools: "" }, { tools: [] }],
    [{ tools: "default" }, {}],
    [{ allowedTools: ["Bash(git *)", "Edit"] }, { allowedTools: ["Bash(git *)", "Edit"] }],
    [{ permissionMode: "manual" }, { permissionMode: "default" }],
    [{ dangerouslySkipPermissions: true }, { skipPermissions: true }],
    [
      { maxTurns: "3", maxBudgetUsd: "0.5" },
      { maxTurns: 3, maxBudgetUsd: 0.5 },
    ],
    [{ systemPromptFile: "prompt.md" }, { systemPrompt: "You are a parrot.\n" }],
    [
      { systemPrompt: "a", appendSystemPromptFile: "prompt.md" },
      { systemPrompt: "a", appendSystemPrompt: "You are a parrot.\n" },
    ],
    [
      { resume: "x", forkSession: true },
      { resume: "x", forkSession: true },
    ],
    [{ continue: true }, { continue: true }],
    [{ jsonSchema: '{"type":"array"}' }, { output: { type: "array" } }],
    [{ jsonSchema: "schema.json" }, { output: { type: "object" } }],
  ])("%j are %j to the session", (options, session) => {
    expect(read(options).session).toEqual(session);
  });

  it.each<[RunFlags, RegExp]>([
    [{ outputFormat: "xml" }, /Invalid --output-format "xml"/],
    [{ inputFormat: "yaml" }, /Invalid --input-format "yaml"/],
    [{ permissionMode: "yolo" }, /Invalid --permission-mode "yolo"/],
    [{ maxTurns: "0" }, /--max-turns needs a whole number from 1, but got "0"/],
    [{ maxTurns: "many" }, /--max-turns/],
    [{ maxTurns: "" }, /--max-turns/],
    [{ maxBudgetUsd: "-1" }, /--max-budget-usd needs an amount above 0/],
    [{ systemPrompt: "a", systemPromptFile: "prompt.md" }, /cannot be given together/],
    [
      { appendSystemPromptFile: "gone.md" },
      /--append-system-prompt-file names a file that cannot be read: .*gone\.md/,
    ],
    [{ jsonSchema: "[1]" }, /--json-schema/],
    [{ jsonSchema: "{bad" }, /--json-schema is not a JSON Schema object/],
    [{ allowedTools: ["Bash("] }, /--allowedTools contains a rule that is not valid/],
    [{ includePartialMessages: true }, /--include-partial-messages has no meaning without/],
    [{ replayUserMessages: true, outputFormat: "json" }, /--replay-user-messages has no meaning without/],
    [{ inputFormat: "stream-json" }, /the prompts come from stdin alone/],
  ])("%j are refused in one sentence [CLI-6]", (options, message) => {
    expect(() => read(options)).toThrow(message);
    expect(() => read(options)).toThrow(expect.objectContaining({ code: "misuse" }));
  });

  it.each([
    [{ allowedTools: ["Read"] }, ["Edit", "explain this"]],
    [{ tools: "Read" }, ["mcp__github__get_issue", "explain this"]],
    [{ allowedTools: ["Read"] }, ["explain this", "Bash(git *)"]],
  ])("%j with the words %j are refused: a tool of the list became a word of the prompt", (options, words) => {
    expect(() => read(options, words)).toThrow(/was given where a prompt is expected/);
  });

  it("a prompt of several words, or of one that is also a tool, is a prompt", () => {
    expect(() => read({}, ["explain", "Edit"])).not.toThrow();
    expect(() => read({ allowedTools: ["Read"] }, ["Edit"])).not.toThrow();
    expect(() => read({ allowedTools: ["Read"] }, ["read", "this", "file"])).not.toThrow();
    expect(() => read({}, ["explain", "Edit"], ["Bash"])).toThrow(/"Edit" was given where/);
  });
});

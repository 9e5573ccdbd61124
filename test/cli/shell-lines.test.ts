import { mkdirSync } from "node:fs";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runInProcess } from "../scenarios/run-command.ts";

type Kind = "text" | "object" | "list" | "lines" | "nothing";
type Line = readonly [words: readonly string[], code: number, kind: Kind, input?: string];

/** Lines that scripts write, in their order, with the exit code and the form of the output that Claude Code 2.1.325 gave for each. */
const lines: readonly Line[] = [
  [["-p", "hi"], 0, "text"],
  [["-p", "hi", "--output-format", "json"], 0, "object"],
  [["-p", "hi", "--output-format", "stream-json", "--verbose"], 0, "lines"],
  [["-p"], 0, "text", "hi\n"],
  [["-p", "summarise this"], 0, "text", "data\n"],
  [["-p"], 1, "nothing"],
  [["-p", ""], 1, "nothing"],
  [["-p", "hi", "--output-format", "xml"], 1, "nothing"],
  [["-p", "hi", "--nonsense"], 1, "nothing"],
  [["-p", "hi", "--model"], 1, "nothing"],
  [["-p", "hi", "--max-turns", "1"], 0, "text"],
  [["-p", "hi", "--max-turns", "abc"], 1, "nothing"],
  [["-p", "hi", "--append-system-prompt", "be brief"], 0, "text"],
  [["-p", "hi", "--system-prompt", "x", "--append-system-prompt", "y"], 0, "text"],
  [["-p", "hi", "--allowedTools", "Bash(git *)", "Edit"], 0, "text"],
  [["-p", "hi", "--allowed-tools=Read"], 0, "text"],
  [["-p", "hi", "--disallowedTools", "Bash(rm *)"], 0, "text"],
  [["-p", "hi", "--tools", ""], 0, "text"],
  [["-p", "hi", "--tools", "default"], 0, "text"],
  [["-p", "hi", "--tools", "Bash,Read"], 0, "text"],
  [["-p", "hi", "--permission-mode", "plan"], 0, "text"],
  [["-p", "hi", "--permission-mode", "nonsense"], 1, "nothing"],
  [["-p", "hi", "--permission-mode", "default"], 0, "text"],
  [["-p", "hi", "--permission-mode", "manual"], 0, "text"],
  [["-p", "hi", "--session-id", "33333333-1111-4111-8111-111111111111"], 0, "text"],
  [["-p", "hi", "--session-id", "33333333-1111-4111-8111-111111111111"], 1, "nothing"],
  [["-p", "hi", "--session-id", "not-a-uuid"], 1, "nothing"],
  [["-p", "more", "--resume", "33333333-1111-4111-8111-111111111111"], 0, "text"],
  [["-p", "more", "-r", "33333333-1111-4111-8111-111111111111", "--output-format", "json"], 0, "object"],
  [["-p", "more", "--resume", "44444444-1111-4111-8111-111111111111"], 1, "nothing"],
  [["-p", "more", "--resume"], 1, "nothing"],
  [["-p", "more", "-c"], 0, "text"],
  [["-p", "more", "--continue", "--fork-session", "--output-format", "json"], 0, "object"],
  [["-p", "more", "--resume", "33333333-1111-4111-8111-111111111111", "--fork-session"], 0, "text"],
  [
    [
      "-p",
      "hi",
      "--resume",
      "33333333-1111-4111-8111-111111111111",
      "--session-id",
      "55555555-1111-4111-8111-111111111111",
    ],
    1,
    "nothing",
  ],
  [["-p", "hi", "--mcp-config", '{"mcpServers":{}}'], 0, "text"],
  [["-p", "hi", "--mcp-config", "{bad"], 1, "nothing"],
  [["-p", "hi", "--mcp-config", "nofile.json"], 1, "nothing"],
  [["-p", "hi", "--strict-mcp-config"], 0, "text"],
  [["-p", "hi", "--settings", '{"model":"haiku"}'], 0, "text"],
  [["-p", "hi", "--settings", "{bad"], 1, "nothing"],
  [["-p", "hi", "--settings", "nofile.json"], 1, "nothing"],
  [["-p", "hi", "--setting-sources", "user"], 0, "text"],
  [["-p", "hi", "--setting-sources", "nonsense"], 1, "nothing"],
  [["-p", "hi", "--agents", '{"r":{"description":"d","prompt":"p"}}'], 0, "text"],
  [["-p", "hi", "--agents", "{bad"], 1, "nothing"],
  [["-p", "hi", "--agent", "nosuch"], 1, "nothing"],
  [["-p", "hi", "--json-schema", "{bad"], 1, "nothing"],
  [["-p", "hi", "--input-format", "stream-json"], 1, "nothing"],
  [
    ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"],
    0,
    "lines",
    '{"type":"user","message":{"role":"user","content":"hi"}}\n',
  ],
  [
    ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"],
    1,
    "nothing",
    "garbage\n",
  ],
  [["-p", "hi", "--include-partial-messages"], 1, "nothing"],
  [["-p", "hi", "--include-partial-messages", "--output-format", "stream-json", "--verbose"], 0, "lines"],
  [["-p", "hi", "--replay-user-messages"], 1, "nothing"],
  [["-p", "hi", "--no-session-persistence"], 0, "text"],
  [["-p", "hi", "--max-budget-usd", "1"], 0, "text"],
  [["-p", "hi", "--max-budget-usd", "x"], 1, "nothing"],
  [["-p", "hi", "--fallback-model", "haiku"], 0, "text"],
  [["-p", "hi", "--fallback-model", "opus,,haiku"], 1, "nothing"],
  [["-p", "hi", "--effort", "low"], 0, "text"],
  [["-p", "hi", "--add-dir", "/tmp"], 0, "text"],
  [["-p", "hi", "--model", "sonnet", "--output-format", "json"], 0, "object"],
  [["-p", "hi", "-n", "title"], 0, "text"],
  [["-p", "hi", "--verbose"], 0, "text"],
  [["-p", "hi", "--verbose", "--output-format", "json"], 0, "list"],
  [["-p", "hi", "-d"], 0, "text"],
  [["-p", "hi", "--bare"], 0, "text"],
  [["-p", "hi", "--disable-slash-commands"], 0, "text"],
  [["-p", "hi", "--permission-prompts", "none"], 0, "text"],
  [["-p", "a", "b"], 0, "text"],
];

function kindOf(out: string): Kind {
  const text = out.trim();
  if (text === "") return "nothing";
  try {
    return Array.isArray(JSON.parse(text)) ? "list" : "object";
  } catch {
    return text.split("\n").every((line) => line.startsWith("{")) ? "lines" : "text";
  }
}

test("lines of scripts end as they do with the other engine, with output of the same form [DRP-3]", async () => {
  const provider = await startFakeProvider({ respond: () => "An answer." });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  mkdirSync(`${place.cwd}/.git`);
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const found: unknown[] = [];
  for (const [words, , , input] of lines) {
    const { code, out } = await runInProcess(place, words, {
      environment,
      input,
    });
    found.push([words, code, kindOf(out)]);
  }
  expect(found).toEqual(lines.map(([words, code, kind]) => [words, code, kind]));
}, 120_000);

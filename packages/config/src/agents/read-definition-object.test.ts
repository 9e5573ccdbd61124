import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defineAgent } from "./define-agent.ts";
import { readSessionAgents } from "./read-definition-object.ts";

function read(text: string) {
  const document = parseJsonDocument(text, "agents.json");
  return readSessionAgents(document.value, document.locate, "agents.json");
}

describe("[DEF-9] agents as a JSON object", () => {
  test("the key is the name and prompt is the body", () => {
    const { definitions, diagnostics } = read(
      '{"reviewer": {"description": "Reviews.", "prompt": "You review.", "tools": ["Read"], "model": "opus", "maxTurns": 3}}',
    );
    expect(diagnostics).toEqual([]);
    expect(definitions).toMatchObject([
      {
        name: "reviewer",
        prompt: "You review.",
        tools: ["Read"],
        model: "opus",
        maxTurns: 3,
        source: { scope: "session" },
      },
    ]);
  });

  test("a bad agent is a problem with its line and does not hide a good one", () => {
    const { definitions, diagnostics } = read(
      '{\n "bad": {\n  "description": "d",\n  "tools": {"a": 1}\n },\n "good": {"description": "d"}\n}',
    );
    expect(definitions.map(({ name }) => name)).toEqual(["good"]);
    expect(diagnostics).toMatchObject([
      { severity: "error", code: "unreadable-restriction", line: 4, file: "agents.json" },
    ]);
  });

  test.each([
    "[]",
    '"x"',
    "3",
    '{"a": 1}',
    '{"a": {"description": "d", "prompt": 1}}',
    '{"../a": {"description": "d"}}',
    '{"a": {}}',
  ])("%s is refused with a reason", (text) => {
    const { definitions, diagnostics } = read(text);
    expect(definitions).toEqual([]);
    expect(diagnostics.map(({ severity }) => severity)).toContain("error");
  });

  test("no JSON makes it throw", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        read(text);
        read(`{"a": ${text}}`);
        read(
          `{"a": {"description": "d", "tools": ${text}, "hooks": ${text}, "mcpServers": ${text}, "name": ${text}}}`,
        );
      }),
    );
  });
});

describe("[DEF-10] agents defined in code", () => {
  test("a definition is checked like a file's", () => {
    expect(defineAgent({ name: "a", description: "d", prompt: "p", tools: "Read, Grep" })).toMatchObject({
      name: "a",
      tools: ["Read", "Grep"],
      source: { scope: "session" },
    });
  });

  test("its prompt may be computed and its end reported", async () => {
    const definition = defineAgent({
      name: "a",
      description: "d",
      prompt: ({ task }) => `Do ${task}.`,
      onEnd: () => undefined,
    });
    expect(await definition.behaviour?.computePrompt?.({ agent: "a", task: "it", directory: "/" })).toBe(
      "Do it.",
    );
    expect(definition.behaviour?.onEnd).toBeTypeOf("function");
  });

  test("a bad one throws a RetinueError that says what is wrong", () => {
    expect(() => defineAgent({ name: "../a", description: "d", prompt: "p" })).toThrow(
      /could lead out of a directory/,
    );
    try {
      defineAgent({ name: "a", description: "", prompt: "p" });
      expect.unreachable();
    } catch (error) {
      expect(isRetinueError(error) && error.code).toBe("invalid-definition");
    }
  });

  test.each<[string, object, RegExp]>([
    ["a field that is none", { systemPrompt: "x" }, /`systemPrompt` is not a field/],
    ["a mode", { permissionMode: "bypas" }, /Unknown permission mode "bypas"/],
    ["an effort", { effort: "hgh" }, /Unknown effort "hgh"/],
    ["a limit", { limits: { toolCals: 1 } }, /`toolCals` is not a limit; did you mean toolCalls\?/],
    ["a number", { maxTurns: -1 }, /`maxTurns` cannot be read/],
    ["a model", { model: { doStream: () => undefined } }, /`model` cannot be read/],
    ["a hook", { hooks: { PreToolUse: [{ hooks: [() => ({})] }] } }, /A hook must be an object/],
    ["a server", { mcpServers: [5] }, /An MCP server was left out/],
    ["a prompt", { prompt: 42 }, /prompt must be a string or a function, but is 42/],
    ["no prompt", { prompt: undefined }, /prompt must be a string or a function/],
    ["a callback", { onEnd: "x" }, /onEnd must be a function/],
  ])("what would have no effect throws: %s", (_what, change, expected) => {
    const input = { name: "a", description: "d", prompt: "p", ...change };
    expect(() => defineAgent(input as never)).toThrow(expected);
  });

  test("what is no object throws, and what is understood does not", () => {
    expect(() => defineAgent(undefined as never)).toThrow(/must be an object .* but is/);
    const odd = {
      name: "a",
      description: "d",
      prompt: "p",
      disallowed_tools: "Bash",
      permissionMode: "acceptedits",
    };
    expect(defineAgent(odd as never)).toMatchObject({
      disallowedTools: ["Bash"],
      permissionMode: "acceptEdits",
    });
  });
});

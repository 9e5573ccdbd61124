import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseJsonDocument } from "../foundation/json-document.ts";
import { isRetinueError } from "../foundation/retinue-error.ts";
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

  test("its prompt may be computed and its end heard", async () => {
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

  test("a bad one throws a Fault that says what is wrong", () => {
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
});

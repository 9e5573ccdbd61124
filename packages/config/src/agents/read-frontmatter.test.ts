import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { agentVocabulary } from "./agent-vocabulary.ts";
import { readFrontmatter } from "./read-frontmatter.ts";

function valuesOf(text: string): Record<string, unknown> {
  return Object.fromEntries(
    [...readFrontmatter(text, agentVocabulary).fields].map(([key, field]) => [key, field.value]),
  );
}

function codesOf(text: string): string[] {
  return readFrontmatter(text, agentVocabulary).diagnostics.map(
    (diagnostic) => `${diagnostic.code}@${diagnostic.line}`,
  );
}

describe("[DEF-1] finding the frontmatter", () => {
  test("the body is everything after the closing fence, trimmed", () => {
    expect(readFrontmatter("---\nname: a\n---\n\nYou help.\n---\nStill body.\n", agentVocabulary).body).toBe(
      "You help.\n---\nStill body.",
    );
  });

  test("a file that does not start with a fence has none", () => {
    expect(readFrontmatter("# Title\n---\nname: a\n---\n", agentVocabulary).type).toBe("none");
    expect(readFrontmatter("", agentVocabulary).type).toBe("none");
  });

  test("a fence that is never closed is distinguished and points at the opening line", () => {
    const reading = readFrontmatter("\n\n---\nname: a\n", agentVocabulary);
    expect(reading.type).toBe("unclosed");
    expect(reading.locate([])?.line).toBe(3);
  });
});

describe("[DEF-6] tolerance for real files", () => {
  test.each([
    ["a byte order mark", "\uFEFF---\nname: a\n---\n", { name: "a" }],
    [
      "Windows line endings",
      "---\r\nname: a\r\ntools: Read\r\n---\r\nBody\r\n",
      { name: "a", tools: "Read" },
    ],
    ["old Mac line endings", "---\rname: a\r---\rBody", { name: "a" }],
    ["a missing final newline", "---\nname: a\n---", { name: "a" }],
    ["leading blank lines", "\n\n---\nname: a\n---\n", { name: "a" }],
    [
      "a whole file that is indented",
      "  ---\n  name: a\n  tools:\n    - Read\n  ---\n  Body",
      { name: "a", tools: ["Read"] },
    ],
    ["a long rule as closing fence", "---\nname: a\n-------\nBody", { name: "a" }],
    [
      "an unquoted colon",
      "---\nname: a\ndescription: Does: things\n---\n",
      { name: "a", description: "Does: things" },
    ],
    ["a bracket in front", "---\ndescription: [Beta] Does\n---\n", { description: "[Beta] Does" }],
    ["a bare star", "---\ntools: *\nmodel: opus\n---\n", { tools: "*", model: "opus" }],
    ["tabs as indentation", "---\ntools:\n\t- Read\n\t- Grep\n---\n", { tools: ["Read", "Grep"] }],
    ["no blank after the colon", "---\nname:a\ndescription: b\n---\n", { name: "a", description: "b" }],
    ["duplicate keys", "---\nmodel: a\nmodel: b\n---\n", { model: "b" }],
    [
      "quotes inside quotes",
      '---\ndescription: "Say "hi" to all"\n---\n',
      { description: 'Say "hi" to all' },
    ],
    ["an apostrophe in single quotes", "---\ndescription: 'It's fine'\n---\n", { description: "It's fine" }],
    ["an unknown escape", '---\ndescription: "Match \\d+"\n---\n', { description: "Match \\d+" }],
    ["a back-tick in front", "---\ndescription: `x` tool\n---\n", { description: "`x` tool" }],
    [
      "an uneven list",
      "---\nname: a: b\ntools:\n   - Read\n - Grep\n---\n",
      { name: "a: b", tools: ["Read", "Grep"] },
    ],
    [
      "lists that are closed at the margin of their key",
      "---\nname: a\nmcpServers:\n  own:\n    args: [\n      'run',\n    ]\n    env: {\n      A: b\n    } # end\n---\n",
      { name: "a", mcpServers: { own: { args: ["run"], env: { A: "b" } } } },
    ],
    [
      "prose below a one-word field",
      "---\nname: a: b\nmodel: opus\nStray words here\n---\n",
      { name: "a: b", model: "opus" },
    ],
  ])("reads %s", (_what, text, expected) => {
    expect(valuesOf(text)).toEqual(expected);
  });

  test("what was repaired is reported with its line", () => {
    expect(codesOf("---\nname: a\ndescription: Does: things\n---\n")).toEqual(["yaml-repaired@3"]);
    expect(codesOf("---\nmodel: a\nmodel: b\n---\n")).toEqual(["duplicate-key@3"]);
    expect(codesOf("---\nname: a\n-----\n")).toEqual(["long-dash-fence@3"]);
    expect(codesOf("---\ntools:\n\t- Read\n---\n")).toEqual(["yaml-repaired@3"]);
  });

  test("a clean file has no problems", () => {
    expect(codesOf("---\nname: a\ndescription: b\ntools: [Read, Grep]\n---\nBody\n")).toEqual([]);
  });

  test("a dialogue at the left margin belongs to the description and swallows no field", () => {
    const text = `---
name: a
description: Finds pages. Examples:

<example>
Context: lost
user: "where?"
assistant: "there"
</example>

model: sonnet
tools: ["Read", "Glob"]
---
`;
    const values = valuesOf(text);
    expect(values).toMatchObject({ name: "a", model: "sonnet", tools: ["Read", "Glob"] });
    expect(Object.keys(values)).toEqual(["name", "description", "model", "tools"]);
    expect(values["description"]).toContain('user: "where?"');
  });

  test("a text cut by a comment sign is pointed out", () => {
    expect(codesOf("---\ndescription: Fix issue #12 now\n---\n")).toEqual(["hash-in-plain-text@2"]);
    expect(codesOf('---\ndescription: "Fix issue #12 now"\n---\n')).toEqual([]);
  });

  test("structure that cannot be read is never guessed from its text", () => {
    const text = "---\nname: a: b\nhooks:\n  Stop:\n  - type: command\n   command: x\n---\n";
    expect(readFrontmatter(text, agentVocabulary).fields.get("hooks")?.unreadable).toBeDefined();
  });
});

describe("no input makes the reader throw or hang", () => {
  const fenced = (inner: string): string => `---\n${inner}\n---\nbody`;

  test("arbitrary text", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 400 }), (inner) => {
        readFrontmatter(inner, agentVocabulary);
        readFrontmatter(fenced(inner), agentVocabulary);
      }),
      { numRuns: 120 },
    );
  });

  test("arbitrary arrangements of the pieces real files are made of", () => {
    const piece = fc.constantFrom(
      ...[
        "name: a",
        "description:",
        "  - x",
        "\t- y",
        "tools: [",
        "]",
        "hooks:",
        "  Stop:",
        "<example>",
        "user: hi",
      ],
      ...[
        "&a",
        "*a",
        "? k",
        ": v",
        "|",
        ">",
        '"',
        "'",
        "---",
        "...",
        "{",
        "}",
        "# c",
        "",
        " ",
        "!!x",
        "%TAG",
        "\u0000",
      ],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (lines) => {
        const reading = readFrontmatter(fenced(lines.join("\n")), agentVocabulary);
        for (const diagnostic of reading.diagnostics) expect(diagnostic.line).toBeGreaterThan(0);
      }),
      { numRuns: 200 },
    );
  });

  test("deep nesting and alias bombs are refused or read, in bounded work", () => {
    expect(valuesOf(fenced(`name: a\nhooks: ${"[".repeat(50_000)}`))["name"]).toBe("a");
    const bomb = ["a0: &a0 [x, x, x]"];
    for (let level = 1; level < 40; level += 1)
      bomb.push(`a${level}: &a${level} [*a${level - 1}, *a${level - 1}]`);
    const values = valuesOf(fenced(`name: a\n${bomb.join("\n")}`));
    expect(values["name"]).toBe("a");
    expect(JSON.stringify(values).length).toBeLessThan(100_000);
  });

  test("a frontmatter of a megabyte is refused", () => {
    expect(readFrontmatter(fenced(`description: ${"x".repeat(1_000_000)}`), agentVocabulary).type).toBe(
      "too-large",
    );
  });

  test("lines that could make a pattern slow take linear work", () => {
    for (const hard of [
      " ".repeat(200_000),
      "a".repeat(200_000),
      "- ".repeat(100_000),
      "a:".repeat(100_000),
    ]) {
      readFrontmatter(fenced(`name: x: y\n${hard}`), agentVocabulary);
    }
  });
});

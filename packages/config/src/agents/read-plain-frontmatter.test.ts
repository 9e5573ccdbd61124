import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { load } from "js-yaml";
import { describe, expect, test } from "vitest";
import { readPlainFrontmatter } from "./read-plain-frontmatter.ts";

function agreesWithYaml(lines: readonly string[]): void {
  const plain = readPlainFrontmatter(lines);
  if (plain !== undefined) expect(plain, lines.join("\n")).toEqual(load(lines.join("\n")));
}

describe("frontmatter without a parser", () => {
  test("reads what most files have", () => {
    const lines = [
      "name: code-reviewer",
      "description: Reviews code. Use when it's done.",
      'model: "opus"',
      "tools:",
      "  - Read",
      "  - Bash(git diff *)",
      "maxTurns: 20",
      "skills: [a, b]",
      "",
      "description-long: >",
      "  Reviews: all of it.",
      "  - And # more.",
      "prompt: |-",
      "  One.",
      "  Two.",
      "color: blue",
    ];
    expect(readPlainFrontmatter(lines)).toEqual({
      name: "code-reviewer",
      description: "Reviews code. Use when it's done.",
      model: "opus",
      tools: ["Read", "Bash(git diff *)"],
      maxTurns: 20,
      skills: ["a", "b"],
      "description-long": "Reviews: all of it. - And # more.\n",
      prompt: "One.\nTwo.",
      color: "blue",
    });
    agreesWithYaml(lines);
  });

  test.each([
    "a: b: c",
    "a: b #c",
    "a: b:",
    "a: true",
    "a: Null",
    "a: 1.5",
    "a: 007",
    "a: [b, [c]]",
    "a: [b",
    "a: *",
    "a: >",
    "a: >\n  b",
    "a: >\n  b\n\nc: d",
    "a: >\n  b\n   c\nd: e",
    "a: >+\n  b\nc: d",
    "a: >\n  b\n c\nd: e",
    "a: |2\n  b\nc: d",
    "a: 'it''s'",
    'a: "\\n"',
    "a:b",
    "a",
    "- a",
    "a: b\n  c",
    "a:\n- b",
    "a:\n  b: c",
    "a:",
    "a: 1\na: 2",
    "# comment",
    "__proto__: x",
    "? a",
    "a: [b: c]",
    "a: 2026-01-01",
    "a: b\u00a0",
  ])("leaves %j to the parser", (text) => {
    expect(readPlainFrontmatter(text.split("\n"))).toBeUndefined();
  });

  test("never reads anything differently than YAML does", () => {
    const scalar = fc.oneof(
      fc.constantFrom(
        "Read",
        "a b",
        "it's",
        'say "hi"',
        "x: y",
        "x #y",
        "true",
        "NULL",
        "~",
        "12",
        "0x1F",
        "1e3",
        ".5",
        "-",
        "- a",
        "[a, b]",
        "[a,b c]",
        "[]",
        "['a']",
        "{a}",
        "'q'",
        '"q"',
        "'a\"b'",
        "*",
        "&a",
        "!x",
        "|",
        "a,b",
        "a]",
        "日本語 です",
        "naïve",
        "a  b",
        "yes",
        "é",
        "%x",
        "@x",
        "a:b",
        "a:",
        ":a",
        "-a",
        "?a",
        "\\n",
      ),
      fc.string({ maxLength: 12 }),
      fc.string({ maxLength: 8, unit: anyCharacter }).filter((text) => !/[\r\n]/.test(text)),
    );
    const line = fc.oneof(
      fc
        .tuple(
          fc.constantFrom("a", "b", "c", "name", "x-y", "__proto__"),
          fc.constantFrom(": ", ":  ", ":", " : "),
          scalar,
        )
        .map((parts) => parts.join("")),
      fc
        .tuple(fc.constantFrom("  - ", "- ", " - ", "    - ", "  ", " ", "   "), scalar)
        .map((parts) => parts.join("")),
      fc.constantFrom("", "a:", "b:", "c:", "# x", "a: >", "b: |", "c: >-", "x: |-", "a: > # x", "b: >+"),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
        const plain = readPlainFrontmatter(lines);
        if (plain !== undefined) agreesWithYaml(lines);
      }),
      { numRuns: 1000 },
    );
  });
});

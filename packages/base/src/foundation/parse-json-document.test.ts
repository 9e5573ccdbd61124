import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseJsonDocument } from "./parse-json-document.ts";

describe("a JSON text with places", () => {
  test("a value is found again by its path, and a missing one by its nearest parent", () => {
    const { locate } = parseJsonDocument('{\n  "a": {\n    "b": [1, 2]\n  }\n}');
    expect(locate(["a", "b"])).toMatchObject({ line: 3, column: 5 });
    expect(locate(["a", "b", 1])).toMatchObject({ line: 3, column: 14 });
    expect(locate(["a", "x", "y"])).toMatchObject({ line: 2, column: 3 });
    expect(locate([])).toMatchObject({ line: 1, column: 1 });
  });

  test.each([
    ['{"a": 1,}', "PropertyNameExpected", 1],
    ['{\n"a": nope\n}', "InvalidSymbol", 2],
    ['{"a": 1 // x\n}', "InvalidCommentToken", 1],
    ['{"a": "x', "UnexpectedEndOfString", 1],
    ["", "ValueExpected", 1],
  ])("%j breaks with a place and what to do", (text, code, line) => {
    const { value, diagnostic } = parseJsonDocument(text, "s.json");
    expect(value).toBeUndefined();
    expect(diagnostic).toMatchObject({ severity: "error", code: "invalid-json", file: "s.json", line });
    expect(diagnostic?.message).toContain(code);
    expect(diagnostic?.advice).toBeDefined();
  });

  test("a byte order mark is no reason to fail", () => {
    expect(parseJsonDocument("\uFEFF[1]").value).toEqual([1]);
  });

  test("JSON nested beyond any stack is read or refused, never thrown", () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    for (const text of [deep, deep.slice(0, -1), `{"a": ${deep}}`]) {
      const document = parseJsonDocument(text);
      document.locate(["a", 0, 0]);
      if (document.value === undefined) expect(document.diagnostic).toBeDefined();
    }
  });

  test("ten thousand values are found; what a hostile file asks beyond has no place", () => {
    const { locate } = parseJsonDocument(JSON.stringify(Array.from({ length: 20_000 }, () => 0)));
    const found = Array.from({ length: 20_000 }, (_, index) => locate([index]) !== undefined);
    expect(found.filter(Boolean)).toHaveLength(10_000);
  });

  test("no text makes it throw", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json()),
        fc.array(fc.oneof(fc.string(), fc.nat(3))),
        (text, path) => {
          parseJsonDocument(text).locate(path);
        },
      ),
    );
  });
});

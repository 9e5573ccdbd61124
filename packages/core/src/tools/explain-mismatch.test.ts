import { describe, expect, test } from "vitest";
import { explainMismatch } from "./explain-mismatch.ts";

const file = [
  "function add(a, b) {",
  "\tconst sum = a + b;  ",
  "\treturn sum;",
  "}",
  "const title = “Hello”;",
  "const Name = 'x';",
].join("\n");

describe("a text that was not found is explained", () => {
  test.each([
    ["const sum = a + b;\n\treturn sum;", "spaces at the ends", "2\t"],
    ["    const sum = a + b;\n    return sum;", "indentation", "2\t"],
    ['const title = "Hello";', "quotes", "5\t"],
    ["const name = 'x';", "capital letters", "6\t"],
    ["return  sum ;", "spaces inside", "3\t"],
    ["function add(first, b) {", "most similar", "1\tfunction add(a, b) {"],
    ["1\tfunction add(a, b) {\n2\t\tconst sum", "line number", ""],
    ["return sum;\\n}", "backslash", ""],
    ["zzzz qqqq", "Nothing in the file", ""],
  ])("%j: %s", (wanted, reason, line) => {
    const text = explainMismatch(file, wanted);
    expect(text).toContain(reason);
    expect(text).toContain(line);
  });

  test("long files and lines are shown in bounds", () => {
    const text = explainMismatch(`${"needle ".repeat(1000)}\n`.repeat(3), "needle needle needles");
    expect(text.length).toBeLessThan(600);
  });
});

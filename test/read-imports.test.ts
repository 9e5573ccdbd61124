import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { packageOf, readImports } from "./read-imports.ts";

const brief = (source: string) => readImports(source).map(({ specifier, kind }) => `${kind} ${specifier}`);

describe("reading the imports of a source text", () => {
  test.each([
    ['import a from "x";', ["static x"]],
    ['import "x";', ["static x"]],
    ['import * as a from "x";', ["static x"]],
    ["import { a, type B } from 'x'", ["static x"]],
    ['import a, { b as c } from "x"', ["static x"]],
    ['import {\n  a,\n  b, // why\n} from "x";', ["static x"]],
    ['import data from "./x.json" with { type: "json" };', ["static ./x.json"]],
    ['import type { A } from "x";', ["types x"]],
    ['import type A from "x";', ["types x"]],
    ['import type * as A from "x";', ["types x"]],
    ['import type from "x";', ["static x"]],
    ['import type, { a } from "x";', ["static x"]],
    ['export { a } from "x";', ["static x"]],
    ['export * from "x";', ["static x"]],
    ['export * as a from "x";', ["static x"]],
    ['export type { A } from "x";', ["types x"]],
    ['export type * from "x";', ["types x"]],
    ['const a = await import("x");', ["dynamic x"]],
    ["const a = await import(`x`);", ["dynamic x"]],
    [`const a = \`\${await import("x")} and \${"}"}\`; import "y";`, ["dynamic x", "static y"]],
    ['import { "odd name" as a } from "x";', ["static x"]],
    ['#!/usr/bin/env node\nimport "x";', ["static x"]],
  ])("sees %j", (source, expected) => {
    expect(brief(source)).toEqual(expected);
  });

  test.each([
    ['// import "x";'],
    ['/* import "x"; */'],
    ["const a = 'import \"x\"';"],
    ["const a = `import 'x'`;"],
    ['const a = /import "x"/;'],
    ['const a = [/[/"]import "x"/g];'],
    ["const here = import.meta.url;"],
    ['loader.import("x");'],
    ["const a = await import(name);"],
    ['export const from = "x";'],
    ["export type A = { from: string };"],
    ['export type From = "x";'],
    ["const a = { import: 1, export: 2 };"],
  ])("sees nothing in %j", (source) => {
    expect(brief(source)).toEqual([]);
  });

  test("an export of own names does not borrow the next statement's module", () => {
    expect(brief('export { a };\nimport b from "x";')).toEqual(["static x"]);
    expect(brief('export { a }\nimport b from "x"')).toEqual(["static x"]);
  });

  test("a division is not taken for a regular expression that swallows code", () => {
    expect(brief('const a = b / c; import "x"; const d = (e) / f;')).toEqual(["static x"]);
  });

  test("a quote that is never closed costs its own line only", () => {
    expect(brief('const a = "oops\nimport "x";')).toEqual(["static x"]);
  });

  test("the line is the line of the keyword", () => {
    const source = 'const a = `\n\n`;\n/*\n*/ import { b } from "x";\nimport("y");';
    expect(readImports(source).map(({ line }) => line)).toEqual([5, 6]);
  });

  test("any text is read to its end without throwing", () => {
    const fragments = fc.constantFrom(
      "`",
      "${",
      "}",
      '"',
      "'",
      "/",
      "*",
      "\\",
      "\n",
      "import ",
      "from ",
      "{",
      "x",
    );
    const texts = fc.oneof(
      fc.string(),
      fc.array(fragments).map((parts) => parts.join("")),
    );
    fc.assert(fc.property(texts, (text) => Array.isArray(readImports(text))));
  });

  test("a comment before an import changes neither its module nor its kind", () => {
    const plainText = fc.string().map((text) => text.replaceAll("*/", ""));
    fc.assert(
      fc.property(plainText, (text) => {
        expect(brief(`/* ${text} */ import type { A } from "x";`)).toEqual(["types x"]);
      }),
    );
  });
});

test.each([
  ["./a.ts", undefined],
  ["node:fs", undefined],
  ["js-yaml", "js-yaml"],
  ["ink/jsx-runtime", "ink"],
  ["@scope/name/deep", "@scope/name"],
])("the package of %j is %j", (specifier, expected) => {
  expect(packageOf(specifier)).toBe(expected);
});

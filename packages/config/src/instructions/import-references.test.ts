import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findImports, readMarkdownLines } from "./import-references.ts";

const references = (text: string) => findImports(readMarkdownLines(text));
const paths = (text: string) => references(text).map(({ path }) => path);

describe("[SPN-3] @path imports", () => {
  it.each([
    ["@docs/a.md", ["docs/a.md"]],
    ["See @README.md.", ["README.md"]],
    ["(see @./a.md), @../b.md!", ["./a.md", "../b.md"]],
    ["@~/mine.md and @/etc/x.md", ["~/mine.md", "/etc/x.md"]],
    ["@my\\ file.md next", ["my file.md"]],
    ["@a.md#section", ["a.md"]],
    ["- @list.md\n1. @second.md\n> @quoted.md", ["list.md", "second.md", "quoted.md"]],
    ["mail me@example.org", []],
    ["`@a.md`", []],
    ["``@a.md ` @b.md`` @c.md", ["c.md"]],
    ["` @a.md\n\n@b.md `", ["a.md", "b.md"]],
    ["` @a.md\n@b.md ` @c.md", ["c.md"]],
    ["- ` @a.md\n- @b.md `", ["a.md", "b.md"]],
    ["\\` @a.md `", ["a.md"]],
    ["```\n@a.md\n```\n@b.md", ["b.md"]],
    ["~~~\n@a.md", []],
    ["<!-- @a.md -->\n@b.md", ["b.md"]],
    ["@ alone, @... and @@twice", []],
  ])("%j imports %j", (text, expected) => {
    expect(paths(text)).toEqual(expected);
  });

  it("knows where an import is", () => {
    expect(references("<!-- x -->\n\nRead @a.md")).toEqual([
      { path: "a.md", line: 3, column: 6, isSurelyFile: true },
    ]);
  });

  it.each([
    ["@./x", true],
    ["@~/x", true],
    ["@notes.md", true],
    ["@scope/package", false],
    ["@somebody", false],
    ["@./src/", false],
  ])("%s is surely a file: %s", (text, expected) => {
    expect(references(text)[0]?.isSurelyFile).toBe(expected);
  });

  it("finds exactly what is in prose, wherever code is between", () => {
    const name = fc.stringMatching(/^[a-z]{1,8}$/).map((word) => `${word}.md`);
    const prose = name.map((file) => ({ text: `See @${file} now.`, imports: [file] }));
    const span = name.map((file) => ({ text: `Not \`@${file}\` here.`, imports: [] }));
    const wideSpan = name.map((file) => ({ text: `\`\` a\` @${file}\n@${file} \`\``, imports: [] }));
    const fence = fc
      .tuple(name, fc.constantFrom("```", "~~~", "`````"))
      .map(([file, sign]) => ({ text: `${sign}md\n@${file}\n\n@${file}\n${sign}`, imports: [] }));
    const comment = name.map((file) => ({ text: `<!-- @${file}\n\n@${file} -->`, imports: [] }));
    fc.assert(
      fc.property(fc.array(fc.oneof(prose, span, wideSpan, fence, comment)), (blocks) => {
        const text = blocks.map((block) => block.text).join("\n\n");
        expect(paths(text)).toEqual(blocks.flatMap(({ imports }) => imports));
      }),
    );
  });

  it("a text made to be slow is not", () => {
    expect(paths(`${"` `` ".repeat(40_000)}@a.md`)).toEqual(["a.md"]);
    expect(paths("@".repeat(200_000))).toEqual([]);
  });
});

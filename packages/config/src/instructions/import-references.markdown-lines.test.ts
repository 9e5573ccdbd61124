import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMarkdownLines } from "./import-references.ts";

const kept = (text: string) =>
  readMarkdownLines(text)
    .map(({ text: line }) => line)
    .join("\n");
const code = (text: string) =>
  readMarkdownLines(text).flatMap(({ type, line }) => (type === "code" ? [line] : []));

describe("[SPN-3] HTML comments in instructions", () => {
  it.each([
    ["a\n<!-- note -->\nb", "a\nb"],
    ["a\n<!--\nnote\n\nmore\n-->\nb", "a\nb"],
    ["<!-- x --> rest", " rest"],
    ["<!-- x --><!-- y -->\nb", "b"],
    ["<!-- one\n--> text <!-- inline -->", " text <!-- inline -->"],
    ["text <!-- inline --> more", "text <!-- inline --> more"],
    ["<!-- never closed\nb", "<!-- never closed\nb"],
    ["<!-- a -->\n<!-- never closed\nb", "<!-- never closed\nb"],
    ["```\n<!-- shown -->\n```", "```\n<!-- shown -->\n```"],
    ["<!--\n```\n-->\nb", "b"],
    ["a\r\n<!-- x -->\r\nb", "a\nb"],
  ])("%j becomes %j", (text, expected) => {
    expect(kept(text)).toBe(expected);
  });

  it("a file of nothing but opened comments is read in one go", () => {
    const text = "<!--\n".repeat(50_000);
    expect(kept(text)).toBe(text);
  });
});

describe("[SPN-3] code fences", () => {
  it.each([
    ["```\na\n```\nb", [1, 2, 3]],
    ["~~~ts\n```\n~~~\nb", [1, 2, 3]],
    ["````\n```\n````\nb", [1, 2, 3]],
    ["- ```\n  a\n  ```\nb", [1, 2, 3]],
    ["> ```\n> a\nb", [1, 2]],
    ["``` a ` b\nc", []],
    ["```\nnever closed", [1, 2]],
  ])("%j is code on the lines %j", (text, expected) => {
    expect(code(text)).toEqual(expected);
  });

  it("no text makes it fail, and without comments nothing is lost", () => {
    const piece = fc.constantFrom(
      "```",
      "~~~",
      "<!--",
      "-->",
      "a",
      "`",
      "> ",
      "- ",
      "\n",
      "\r\n",
      " ",
      "@x.md",
    );
    fc.assert(
      fc.property(
        fc.array(piece).map((pieces) => pieces.join("")),
        (text) => {
          const lines = readMarkdownLines(text);
          if (!text.includes("-->")) expect(kept(text)).toBe(text.replaceAll("\r\n", "\n"));
          expect(lines.every(({ line }, at) => line > (lines[at - 1]?.line ?? 0))).toBe(true);
        },
      ),
    );
  });
});

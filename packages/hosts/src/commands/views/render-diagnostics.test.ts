import { type Diagnostic, describeCounts } from "@retinue/base/foundation/diagnostic.ts";
import { describe, expect, it } from "vitest";
import { createPaint } from "../../shared/paint.ts";
import { widthOf } from "../../shared/strip-control-characters.ts";
import { groupByFile, renderDiagnostics } from "./render-diagnostics.ts";

const diagnostics: Diagnostic[] = [
  { severity: "warning", code: "all", message: "Too much." },
  { severity: "warning", code: "late", message: "Later.", file: "b.md", line: 3, column: 2, length: 3 },
  { severity: "note", code: "same-line", message: "Earlier.", file: "b.md", line: 3, column: 1 },
  {
    severity: "error",
    code: "unknown-tool",
    message: "`Grpe` is not a known tool; the entry has no effect.",
    advice: "Did you mean `Grep`?",
    file: "a.md",
    line: 2,
    column: 8,
    length: 4,
  },
];
const texts = new Map([["a.md", "---\ntools: Grpe\n---\n"]]);
const render = (width: number, list = diagnostics) =>
  renderDiagnostics(groupByFile(list), {
    paint: createPaint(false),
    width,
    nameOf: (file) => file,
    textOf: (file) => texts.get(file),
  });

describe("problems before people", () => {
  it("begin with path:line:column, then a caret under the place, and advice [CLI-2, CLI-6, DEF-7]", () => {
    expect(
      render(90),
    ).toBe(`a.md:2:8: error: \`Grpe\` is not a known tool; the entry has no effect. [unknown-tool]
     2 | tools: Grpe
       |        ^^^^
    → Did you mean \`Grep\`?

b.md:3:1: note: Earlier. [same-line]
b.md:3:2: warning: Later. [late]

warning: Too much. [all]
`);
  });

  it.each([40, 60, 80, 120])("keep to a width of %i", (width) => {
    for (const line of render(width).split("\n")) expect(widthOf(line)).toBeLessThanOrEqual(width);
  });

  it("cannot send control sequences to the terminal", () => {
    texts.set("evil.md", "name: \u001b]0;owned\u0007\u001b[2J\n");
    const output = render(80, [
      {
        severity: "error",
        code: "x",
        message: "a\u001b[2Jb",
        file: "evil.md",
        line: 1,
        advice: "\u001b[31m",
      },
    ]);
    expect(output).not.toContain("\u001b");
    expect(output).not.toContain("\u0007");
  });

  it.each([
    [{ error: 1, warning: 2, note: 0 }, "1 error, 2 warnings"],
    [{ error: 0, warning: 0, note: 0 }, "no problems"],
  ])("are counted in words: %j", (counts, words) => {
    expect(describeCounts(counts)).toBe(words);
  });
});

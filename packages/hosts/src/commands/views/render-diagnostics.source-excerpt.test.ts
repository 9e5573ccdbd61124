import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { widthOf } from "../../shared/strip-control-characters.ts";
import { sourceExcerpt } from "./render-diagnostics.ts";

describe("sourceExcerpt", () => {
  it("puts the carets under the place [DEF-7]", () => {
    expect(sourceExcerpt("tools: Grpe", { column: 8, length: 4 }, 40)).toEqual({
      text: "tools: Grpe",
      indent: "       ",
      carets: "^^^^",
    });
  });

  it("counts wide characters and tabs as the terminal does", () => {
    expect(sourceExcerpt("\t说明: x", { column: 6, length: 1 }, 40)).toEqual({
      text: " 说明: x",
      indent: "       ",
      carets: "^",
    });
  });

  it("cuts a long line around the place", () => {
    const line = `description: ${"a".repeat(100)}: ${"b".repeat(100)}`;
    const { text, indent, carets } = sourceExcerpt(line, { column: 114, length: 1 }, 40);
    expect(text.startsWith("…a")).toBe(true);
    expect(text.endsWith("b…")).toBe(true);
    expect(text[indent.length]).toBe(":");
    expect(carets).toBe("^");
  });

  it("stays in its room, whatever the line and the place", () => {
    const place = fc.record({
      column: fc.integer({ min: 1, max: 300 }),
      length: fc.integer({ min: 1, max: 300 }),
    });
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter, maxLength: 250 }),
        place,
        fc.integer({ min: 20, max: 90 }),
        (line, at, width) => {
          const { text, indent, carets } = sourceExcerpt(line, at, width);
          expect(widthOf(text)).toBeLessThanOrEqual(width);
          expect(carets.length).toBeGreaterThan(0);
          expect(indent.length + carets.length).toBeLessThanOrEqual(width + 1);
        },
      ),
    );
  });
});

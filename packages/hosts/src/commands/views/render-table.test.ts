import { describe, expect, it } from "vitest";
import { createPaint } from "../../shared/paint.ts";
import { widthOf } from "../../shared/strip-control-characters.ts";
import { type Column, renderTable } from "./render-table.ts";

const columns: Column[] = [
  { heading: "NAME", atLeast: 6, atMost: 12 },
  { heading: "TOOLS", atLeast: 8, atMost: 14 },
  { heading: "ABOUT", atLeast: 10, elseBelow: 20 },
];
const rows = [
  ["审查员", "Read, Grep, Glob, WebFetch", "Reviews what others have written in the last days"],
  ["runner", "Bash", "Runs"],
];
const render = (width?: number) => renderTable({ columns, rows, width, paint: createPaint(false) });

describe("renderTable", () => {
  it("aligns columns by cells where there is no limit, and cuts nothing", () => {
    expect(render()).toBe(
      [
        "NAME    TOOLS                       ABOUT",
        "审查员  Read, Grep, Glob, WebFetch  Reviews what others have written in the last days",
        "runner  Bash                        Runs",
        "",
      ].join("\n"),
    );
  });

  it("cuts the wide columns first", () => {
    expect(render(60).split("\n")[1]).toBe("审查员  Read, Grep, G…  Reviews what others have written in…");
  });

  it("puts the last column below where it would be too narrow", () => {
    expect(render(32).split("\n").slice(0, 3)).toEqual([
      "NAME    TOOLS",
      "审查员  Read, Grep, Glob, WebFe…",
      "    Reviews what others have wr…",
    ]);
  });

  it("gives up columns in a very narrow terminal", () => {
    expect(render(12).split("\n").slice(0, 3)).toEqual(["审查员", "  Read, Gre…", "  Reviews w…"]);
  });

  it.each([200, 100, 80, 60, 45, 30, 20, 12])("never writes more than %i cells", (width) => {
    for (const line of render(width).split("\n")) expect(widthOf(line)).toBeLessThanOrEqual(width);
  });
});

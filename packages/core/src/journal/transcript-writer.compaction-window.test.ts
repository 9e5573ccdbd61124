import { describe, expect, test } from "vitest";
import { createCompactionWindow } from "./transcript-writer.ts";

/** A conversation of so many turns: a prompt or result each, then an answer of two lines. */
function talk(lines: ReturnType<typeof createCompactionWindow>, turns: readonly number[]): void {
  for (const turn of turns) {
    lines.add([`u${turn}`]);
    lines.addAnswer([`a${turn}`, `b${turn}`]);
  }
}

describe("[CMP-3, TRN-3] the lines that a compaction keeps", () => {
  test("begin with the first line of the answer that is so many from the end", () => {
    const lines = createCompactionWindow();
    talk(lines, [1, 2, 3]);
    expect(lines.newest(2)).toEqual(["a2", "b2", "u3", "a3", "b3"]);
    expect(lines.newest(0)).toEqual([]);
    expect(lines.newest(9)).toEqual(["a1", "b1", "u2", "a2", "b2", "u3", "a3", "b3"]);
  });

  test("are found again after one compaction and after the next", () => {
    const lines = createCompactionWindow();
    talk(lines, [1, 2, 3]);
    lines.replace("s1", 1);
    expect(lines.newest(1)).toEqual(["a3", "b3"]);
    talk(lines, [4, 5]);
    expect(lines.newest(3)).toEqual(["a3", "b3", "u4", "a4", "b4", "u5", "a5", "b5"]);
    expect(lines.newest(2)).toEqual(["a4", "b4", "u5", "a5", "b5"]);
    lines.replace("s2", 0);
    expect(lines.newest(1)).toEqual([]);
    talk(lines, [6]);
    expect(lines.newest(1)).toEqual(["a6", "b6"]);
  });

  test("of a resumed conversation are those it was made of", () => {
    const lines = createCompactionWindow({ lines: ["u1", "a1", "u2", "a2"], answers: ["a1", "a2"] });
    talk(lines, [3]);
    expect(lines.newest(2)).toEqual(["a2", "u3", "a3", "b3"]);
  });
});

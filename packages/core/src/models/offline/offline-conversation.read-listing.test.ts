import { describe, expect, it } from "vitest";
import {
  isCut,
  readCountRemark,
  readCounts,
  readFoundLines,
  readListing,
  readNumberedLines,
} from "./offline-conversation.ts";

describe("[MDL-4] reading what tools return", () => {
  it("a listing gives sorted paths, relative to the working folder, without the tool's remarks", () => {
    const text =
      "src/b.ts\n./a.ts\n/w/src/a.ts\n\n[The 100 newest of 987 files; narrow the pattern or the path.]";
    expect(readListing(text, "/w")).toEqual({ paths: ["a.ts", "src/a.ts", "src/b.ts"], isCut: true });
    expect(readListing("No file matches **/x.", undefined)).toEqual({ paths: [], isCut: false });
  });

  it("counts give the length of each file, and the remark the whole", () => {
    const text =
      "a.ts:3\nsrc/b c.ts:40\n\n[Results 1 to 2 of 9. Continue with offset 2, or narrow the search. 1200 matching lines in 9 files.]";
    expect([...readCounts(text, undefined)]).toEqual([
      ["a.ts", 3],
      ["src/b c.ts", 40],
    ]);
    expect(readCountRemark(text)).toEqual({ total: { files: 9, lines: 1200 }, shown: 2 });
    expect(readCountRemark("a:1\n\n[1 matching line in 1 file.]")).toEqual({ total: { files: 1, lines: 1 } });
  });

  it("halves of lines beside a gap are not taken for paths", () => {
    const text = "a.ts:3\nsrc/lo\n\n[… 500 characters left out; all of it is in /x …]\n\nng.ts:7\nz.ts:1";
    expect([...readCounts(text, undefined).keys()]).toEqual(["a.ts", "z.ts"]);
    expect(isCut(text)).toBe(true);
  });

  it("found lines are sorted by path and number", () => {
    expect(
      readFoundLines("b.ts:10:x: y\nb.ts:9:z\na.ts:1:\nC:\\d.ts:4:w\n--\nNo matches.", undefined),
    ).toEqual([
      { path: "C:/d.ts", line: 4, text: "w" },
      { path: "a.ts", line: 1, text: "" },
      { path: "b.ts", line: 9, text: "z" },
      { path: "b.ts", line: 10, text: "x: y" },
    ]);
  });

  it("numbered lines lose their numbers, other text is taken as it is", () => {
    expect(readNumberedLines("7\ta\n8\t\tb\n\n[Lines 7 to 8 of 20. Continue with offset 9.]")).toEqual({
      lines: [
        { number: 7, text: "a" },
        { number: 8, text: "\tb" },
      ],
      isCut: true,
    });
    expect(readNumberedLines("plain\ntext").lines).toEqual([
      { number: 1, text: "plain" },
      { number: 2, text: "text" },
    ]);
  });
});

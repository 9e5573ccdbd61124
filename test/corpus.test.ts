import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { compareFields } from "./corpus/corpus-manifest.ts";
import { runCorpus } from "./corpus/run-corpus.ts";

const report = runCorpus("test/fixtures/corpus/manifest.json", (file) => readFileSync(file, "utf8"));

describe("[DEF-2, DEF-3, DEF-4, DEF-6, SKL-1] files that people really have are read as they were meant", () => {
  test.each(
    report.results.map((result) => [result.entry.file, result.mismatches] as const),
  )("%s", (_file, mismatches) => {
    expect(mismatches).toEqual([]);
  });

  test("every kind built so far is compared", () => {
    expect([...report.kinds.keys()].sort()).toEqual(
      "agent hooks marketplace mcp memory plugin settings skill".split(" "),
    );
    expect([...report.skipped.keys()]).toEqual([]);
  });
});

describe("comparing with an expectation", () => {
  test("null, an empty text and an absent field are the same; anything else is not", () => {
    expect(compareFields({ color: null, bodyHead: "" }, { bodyHead: null })).toEqual([]);
    expect(compareFields({ color: null }, { color: "red" })).toHaveLength(1);
    expect(compareFields({ bodyHead: "" }, { bodyHead: "text" })).toHaveLength(1);
    expect(compareFields({ bodyHead: "text" }, {})).toHaveLength(1);
  });
});

import { describe, expect, test } from "vitest";
import { readCitations, readTestMarks } from "./read-citations.ts";

const idsIn = (source: string) => readCitations(source).flatMap(({ ids }) => ids);

describe("reading which promises a test file cites", () => {
  test.each([
    ['test("a rule [DEF-3]", () => {});', ["DEF-3"]],
    ["it('a rule [DEF-3, DEF-12]', () => {});", ["DEF-3", "DEF-12"]],
    ['describe("a group [SCP-1]", () => { test("inside [SCP-2]", run); });', ["SCP-1", "SCP-2"]],
    ['test.each([[1], [f(2)]])("of %s [TLS-4]", run);', ["TLS-4"]],
    ['test.each(table)("of %s [TLS-4]", run);', ["TLS-4"]],
    [`test(\`of \${name} [CLI-2]\`, run);`, ["CLI-2"]],
    ['test("two places [DEF-1] in one [DEF-2]", run);', ["DEF-1", "DEF-2"]],
    ['test(\n  "on its own line [DEF-5]",\n  run,\n);', ["DEF-5"]],
  ])("finds the ids of %j", (source, expected) => {
    expect(idsIn(source)).toEqual(expected);
  });

  test.each([
    ['// test("a rule [DEF-3]")'],
    ['const text = "[DEF-3]";'],
    ["expect(readCitations('test(\"[DEF-3]\")')).toEqual([]);"],
    ['pattern.test("[DEF-3]");'],
    ['test("a rule of DEF-3", run);'],
    ['test("an index [0] or a word [note]", run);'],
    ["test(title, run);"],
  ])("finds none in %j", (source) => {
    expect(idsIn(source)).toEqual([]);
  });

  test("a bracket with more than ids and commas is garbled, and its ids still count", () => {
    expect(readCitations('test("x [DEF-1 to DEF-3]", run);')).toEqual([
      { title: "x [DEF-1 to DEF-3]", line: 1, ids: ["DEF-1", "DEF-3"], isGarbled: true },
    ]);
  });
});

test("marks on tests are read along the whole chain", () => {
  const source = 'test.concurrent.only("a", run); list.only(1); describe.skip("b", run);';
  expect(readTestMarks(source).map(({ text }) => text)).toEqual(["concurrent", "only", "skip"]);
});

import { expect, test } from "vitest";
import { findCycles, findKnots } from "./find-cycles.ts";

test.each([
  ["nothing", [], []],
  ["a diamond", ["a>b", "a>c", "b>d", "c>d"], []],
  ["a file that imports itself", ["a>a"], ["a>a"]],
  ["a long way round", ["x>a", "a>b", "b>c", "c>a"], ["a>b>c>a"]],
  ["two knots", ["a>b", "b>a", "c>d", "d>c"], ["a>b>a", "c>d>c"]],
])("finds the cycles of %s", (_, edges, expected) => {
  const graph = new Map<string, string[]>();
  for (const edge of edges) {
    const [from = "", to = ""] = edge.split(">");
    graph.set(from, [...(graph.get(from) ?? []), to]);
  }
  expect(findCycles(graph).map((cycle) => cycle.join(">"))).toEqual(expected);
});

test("files that all lead to each other are one knot, however many ways there are", () => {
  const graph = new Map([
    ["a", ["b", "d"]],
    ["b", ["c"]],
    ["c", ["a", "b"]],
    ["d", ["e"]],
    ["e", ["d"]],
    ["f", ["a"]],
  ]);
  expect(findKnots(graph)).toEqual([
    ["a", "b", "c"],
    ["d", "e"],
  ]);
});

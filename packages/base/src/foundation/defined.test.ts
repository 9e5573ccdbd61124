import { expect, test } from "vitest";
import { defined } from "./defined.ts";

test("keys without a value are dropped, so that defaults below them hold", () => {
  const given: { readonly mode?: string; readonly depth: number; readonly note: null } = {
    mode: undefined,
    depth: 0,
    note: null,
  };
  expect({ mode: "usual", ...defined(given) }).toStrictEqual({ mode: "usual", depth: 0, note: null });
});

test("a key named __proto__ stays a key", () => {
  const given: object = JSON.parse('{"__proto__": 1}');
  expect(Object.keys(defined(given))).toEqual(["__proto__"]);
});

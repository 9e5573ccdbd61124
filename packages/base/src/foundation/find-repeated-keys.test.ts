import { expect, test } from "vitest";
import { findRepeatedKeys } from "./find-repeated-keys.ts";

test.each([
  ['{"a": 1, "b": {"a": 2}}', []],
  ['{"a": 1, "a": 2}', [["a"]]],
  ['{"b": [{"c": {"a": 1, "\\u0061": 1}}]}', [["b", 0, "c", "a"]]],
  ['\uFEFF{"__proto__": 1, "__proto__": 2}', [["__proto__"]]],
  ['{"a": 1, // twice\n "a": 2,}', [["a"]]],
])("keys that are written twice in %s", (text, expected) => {
  expect(findRepeatedKeys(text)).toEqual(expected);
});

test("a text that is nested too deeply is none that was looked through", () => {
  expect(findRepeatedKeys("[".repeat(200_000))).toBeUndefined();
});

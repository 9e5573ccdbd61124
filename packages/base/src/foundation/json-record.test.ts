import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isRecord, isUnreasonablyLarge, kindOf, quote } from "./json-record.ts";

describe("json-value", () => {
  it.each([
    [{}, true],
    [[], false],
    [null, false],
    ["x", false],
  ])("takes only objects for records: %j", (value, expected) => {
    expect(isRecord(value)).toBe(expected);
  });

  it.each([
    ["plain", '"plain"'],
    [5, "5"],
    [null, "null"],
    [[1], "a list"],
    [{ a: 1 }, "an object"],
    [undefined, "nothing"],
    ["a\nb\u0000", '"a\\nb\\u0000"'],
    ["\u202etxt", '"\ufffdtxt"'],
  ])("shows %j on one line", (value, expected) => {
    expect(quote(value)).toBe(expected);
  });

  it("shortens what is long", () => {
    expect(quote("x".repeat(500)).length).toBeLessThan(90);
    expect(quote("x".repeat(500))).toMatch(/…"$/);
  });

  it("never prints control characters, whatever the text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter }),
        (text) => !/[\u0000-\u001f\u007f-\u009f]/.test(quote(text)),
      ),
    );
  });

  it("names the kind of a value with its article", () => {
    expect([null, [], {}, "", 1, true, undefined].map(kindOf)).toEqual([
      "null",
      "a list",
      "an object",
      "a string",
      "a number",
      "a boolean",
      "nothing",
    ]);
  });

  it("sees depth, size and circles without overflowing the stack", () => {
    const deep: unknown = JSON.parse("[".repeat(200_000) + "]".repeat(200_000));
    const circle: unknown[] = [];
    circle.push(circle);
    let shared: unknown = ["x"];
    for (let level = 0; level < 60; level += 1) shared = [shared, shared];
    expect([deep, circle, shared].map((value) => isUnreasonablyLarge(value))).toEqual([true, true, true]);
    expect(isUnreasonablyLarge({ a: [1, { b: null }] })).toBe(false);
  });
});

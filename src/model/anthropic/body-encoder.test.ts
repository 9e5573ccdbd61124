import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBodyEncoder } from "./body-encoder.ts";

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

describe("createBodyEncoder", () => {
  test("gives the bytes that JSON.stringify gives, however often items are sent again", () => {
    const encoder = createBodyEncoder();
    const list = fc.array(fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.integer()));
    const body = fc.dictionary(fc.string(), fc.oneof(list, fc.jsonValue(), fc.constant(undefined)));
    fc.assert(
      fc.property(body, (parameters) => {
        const expected = JSON.stringify(parameters);
        expect(text(encoder.encode(parameters))).toBe(expected);
        expect(text(encoder.encode({ ...parameters }))).toBe(expected);
      }),
    );
  });

  test("an item is serialised once", () => {
    const encoder = createBodyEncoder();
    let count = 0;
    const item = {
      toJSON() {
        count += 1;
        return { text: "…" };
      },
    };
    encoder.encode({ messages: [item] });
    const again = encoder.encode({ messages: [item, { text: "ä" }] });
    expect(text(again)).toBe('{"messages":[{"text":"…"},{"text":"ä"}]}');
    expect(count).toBe(1);
  });
});

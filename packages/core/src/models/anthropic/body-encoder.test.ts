import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBodyEncoder } from "./body-encoder.ts";

function text({ bytes }: { readonly bytes: Uint8Array }): string {
  return Buffer.from(bytes).toString("utf8");
}

const item = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue());

describe("createBodyEncoder", () => {
  test("gives the bytes of JSON.stringify, whatever was sent before", () => {
    const pool = fc.array(item, { minLength: 1, maxLength: 6 });
    const sendings = fc.array(fc.array(fc.nat(5), { maxLength: 12 }), { maxLength: 6 });
    const rest = fc.dictionary(fc.string(), fc.oneof(fc.array(item), fc.jsonValue(), fc.constant(undefined)));
    fc.assert(
      fc.property(pool, sendings, rest, (items, lists, more) => {
        const encoder = createBodyEncoder();
        const conversation = {};
        for (const list of lists) {
          const messages = list.map((index) => items[index % items.length]);
          const body = { ...more, messages };
          const encoded = encoder.encode(body, conversation);
          expect(text(encoded)).toBe(JSON.stringify(body));
          if (list.length % 2 === 0) encoded.release();
        }
      }),
    );
  });

  test("conversations do not share bytes", () => {
    const encoder = createBodyEncoder();
    const [a, b] = [{}, {}];
    encoder.encode({ messages: [{ text: "one" }, { text: "two" }] }, a);
    expect(text(encoder.encode({ messages: [{ text: "…" }] }, b))).toBe('{"messages":[{"text":"…"}]}');
    expect(text(encoder.encode({}, a))).toBe("{}");
  });

  test("what was given out stays as it was", () => {
    const encoder = createBodyEncoder();
    const conversation = {};
    const first = encoder.encode({ messages: [{ text: "one" }] }, conversation);
    encoder.encode({ messages: [{ text: "two" }] }, conversation);
    expect(text(first)).toBe('{"messages":[{"text":"one"}]}');
  });

  test("the memory of the bodies of a hundred agents is used again, and that of bodies that are large together is not kept", () => {
    const encoder = createBodyEncoder();
    const round = (letters: number) => {
      const bodies = Array.from({ length: 100 }, (_, id) =>
        encoder.encode({ a: "x".repeat(letters) }, { id }),
      );
      for (const body of bodies) body.release();
      return new Set(bodies.map(({ bytes }) => bytes.buffer));
    };
    const usedAgain = (letters: number) => {
      const before = round(letters);
      return [...round(letters)].filter((buffer) => before.has(buffer)).length;
    };
    expect(usedAgain(20_000)).toBe(100);
    expect(usedAgain(1_000_000)).toBeLessThan(10);
  });

  test("the memory of a body that was answered holds the next one, however often it is released", () => {
    const encoder = createBodyEncoder();
    const conversation = {};
    const first = encoder.encode({ messages: [{ text: "one" }] }, conversation);
    first.release();
    first.release();
    const second = encoder.encode({ messages: [{ text: "two" }] }, conversation);
    const third = encoder.encode({ messages: [{ text: "six" }] }, conversation);
    expect(second.bytes.buffer).toBe(first.bytes.buffer);
    expect(third.bytes.buffer).not.toBe(first.bytes.buffer);
    expect([text(second), text(third)]).toEqual([
      '{"messages":[{"text":"two"}]}',
      '{"messages":[{"text":"six"}]}',
    ]);
  });

  test("an item that is sent again is not serialised again", () => {
    const encoder = createBodyEncoder();
    let count = 0;
    const counted = {
      toJSON() {
        count += 1;
        return { text: "…" };
      },
    };
    const conversation = {};
    encoder.encode({ tools: [counted], messages: [counted] }, conversation);
    encoder.encode({ tools: [counted], messages: [counted, { text: "ä" }] }, conversation);
    expect(count).toBe(2);
  });
});

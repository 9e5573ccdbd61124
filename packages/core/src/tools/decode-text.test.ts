import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeText, encodeText, looksBinary, type TextShape } from "./decode-text.ts";

const shapes: TextShape[] = [
  { encoding: "utf-8", bom: false },
  { encoding: "utf-8", bom: true },
  { encoding: "utf-16le", bom: true },
  { encoding: "utf-16be", bom: true },
];

describe("text as bytes", () => {
  test.each(shapes)("%j comes back as it was", (shape) => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        fc.pre(shape.bom || !text.startsWith("\ufeff"));
        expect(decodeText(encodeText(text, shape))).toEqual({ ...shape, text, exact: true });
      }),
    );
  });

  test("bytes that are no text are replaced and said to be", () => {
    expect(decodeText(Buffer.from([0x61, 0xff, 0x62]))).toMatchObject({ text: "a\ufffdb", exact: false });
  });

  test.each([
    [Buffer.from("text\n"), false],
    [Buffer.from(""), false],
    [Buffer.from("\u001b[31mred\u001b[0m"), false],
    [Buffer.from("a\0b"), true],
    [Buffer.from([1, 2, 3, 4, 0x61]), true],
    [encodeText("wide", { encoding: "utf-16le", bom: true }), false],
  ])("%j is binary: %s", (bytes, binary) => {
    expect(looksBinary(bytes)).toBe(binary);
  });
});

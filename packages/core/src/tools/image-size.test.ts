import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ImageType, imageSizeOf, imageTypeOf } from "./image-size.ts";

const bytes = (hex: string, length = 0): Buffer =>
  Buffer.concat([Buffer.from(hex.replaceAll(" ", ""), "hex"), Buffer.alloc(length)]);
const png = bytes("89504e470d0a1a0a 0000000d 49484452 00000280 000001e0");
const gif = bytes("474946383961 0a00 0500");
const jpeg = bytes("ffd8 ffe0 0004 4a46 ffc0 0011 08 0010 0020 03");
const riff = "52494646 00000000 57454250";

describe("image headers", () => {
  test.each<[ImageType, Buffer, number, number]>([
    ["image/png", png, 640, 480],
    ["image/gif", gif, 10, 5],
    ["image/jpeg", jpeg, 32, 16],
    ["image/webp", bytes(`${riff} 56503858 0a000000 00000000 630000 c70000`), 100, 200],
    ["image/webp", bytes(`${riff} 5650384c 00000000 2f 6340 3100`), 100, 198],
    ["image/webp", bytes(`${riff} 56503820 00000000 000000 9d012a 6400 c800`), 100, 200],
  ])("%s is recognised and measured", (type, image, width, height) => {
    expect(imageTypeOf(image)).toBe(type);
    expect(imageSizeOf(image, type)).toEqual({ width, height });
  });

  test("what is damaged or something else is neither", () => {
    expect(imageTypeOf(Buffer.from("plain text"))).toBeUndefined();
    expect(imageSizeOf(png.subarray(0, 18), "image/png")).toBeUndefined();
    expect(imageSizeOf(bytes("ffd8ff", 20), "image/jpeg")).toBeUndefined();
  });

  test("any bytes are answered", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.constantFrom(png, gif, jpeg), (tail, head) => {
        const image = Buffer.concat([head.subarray(0, 8), tail]);
        const type = imageTypeOf(image);
        if (type !== undefined) imageSizeOf(image, type);
      }),
    );
  });
});

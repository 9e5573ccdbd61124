import fc from "fast-check";

const [firstSurrogate, surrogates] = [0xd800, 0x800];

/** Any character of Unicode but half a pair, as a unit of strings. What fast-check calls `binary` takes seconds to make. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - surrogates })
  .map((point) => String.fromCodePoint(point < firstSurrogate ? point : point + surrogates));

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSseDecoder, type SseEvent } from "./create-sse-decoder.ts";

function decode(pieces: readonly Uint8Array[]): readonly SseEvent[] {
  const decoder = createSseDecoder();
  return pieces.flatMap((piece) => decoder.push(piece));
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

describe("createSseDecoder", () => {
  test.each<[string, string, readonly SseEvent[]]>([
    ["an event with data", "event: a\ndata: 1\n\n", [{ event: "a", data: "1" }]],
    ["only one blank after the colon is taken away", "data:  x\n\n", [{ event: "", data: " x" }]],
    ["no blank after the colon is fine", "event:a\ndata:1\n\n", [{ event: "a", data: "1" }]],
    ["several data lines are joined", "data: 1\ndata: 2\n\n", [{ event: "", data: "1\n2" }]],
    [
      "comments and other fields are passed over",
      ": hi\nid: 7\nretry: 1\ndata: x\n\n",
      [{ event: "", data: "x" }],
    ],
    ["windows line ends", "event: a\r\ndata: 1\r\n\r\n", [{ event: "a", data: "1" }]],
    ["old mac line ends", "event: a\rdata: 1\r\rx", [{ event: "a", data: "1" }]],
    ["an event without data is none", "event: a\n\ndata: 1\n\n", [{ event: "", data: "1" }]],
    ["what was not closed is not given out", "data: 1\n\ndata: 2\n", [{ event: "", data: "1" }]],
    ["a byte order mark is not data", "\uFEFFdata: 1\n\n", [{ event: "", data: "1" }]],
  ])("%s", (_rule, text, expected) => {
    expect(decode([bytes(text)])).toEqual(expected);
  });

  test("any cut of the bytes gives the same events", () => {
    const line = fc.constantFrom("event: a", "data: ä€😀", "data: {}", ": c", "", "");
    const text = fc
      .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 30 })
      .map((lines) => lines.flat().join(""));
    fc.assert(
      fc.property(text, fc.array(fc.nat(200), { maxLength: 20 }), (whole, cuts) => {
        const all = bytes(whole);
        const at = [0, ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b), all.length];
        const pieces = at.slice(1).map((end, index) => all.slice(at[index], end));
        expect(decode(pieces)).toEqual(decode([all]));
      }),
      { numRuns: 80 },
    );
  });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { createLineReader, createTail } from "./connect-process.ts";

test("[MCP-1] lines are the same however the bytes are cut", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.integer({ min: 1, max: 7 }), (texts, size) => {
      const lines = texts.map((text) => text.replace(/[\r\n]/g, ""));
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
      const read: string[] = [];
      const reader = createLineReader(1_000_000, (line) => read.push(line));
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
      expect(read).toEqual(lines);
    }),
  );
});

test("[MCP-1] a line over the limit ends the reading", () => {
  const read: string[] = [];
  const reader = createLineReader(5, (line) => read.push(line));
  expect(reader.push(Buffer.from("abc\r\nabc"))).toBe(true);
  expect(reader.push(Buffer.from("abc"))).toBe(false);
  expect(reader.push(Buffer.from("\nabc\n"))).toBe(false);
  expect(read).toEqual(["abc"]);
});

test("[MCP-1] of what is written the end is kept", () => {
  const tail = createTail(4);
  for (const text of ["abc", "d", "efghijkl", "m"]) tail.push(Buffer.from(text));
  expect(tail.text()).toBe("jklm");
});

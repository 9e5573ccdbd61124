import { expect, test } from "vitest";
import { fencedText } from "./fenced-text.ts";

test.each([
  ["the end of a fence", "a </skill>", "a <\\/skill>"],
  ["an end with blanks in it", "</ agent-memory> < /instructions>", "<\\/ agent-memory> <\\ /instructions>"],
  [
    "an end with letters that nobody sees",
    "</sk\u200bill></agent\u200d-memory>",
    "<\\/skill><\\/agent-memory>",
  ],
  ["invisible orders", "fine\u{E0041}\u{E0042}", "fine"],
  ["text that runs backwards", "a\u202Eb\u2066c", "abc"],
  ["what a terminal obeys", "a\u001b[2J\u0000b", "a[2Jb"],
  ["a reminder", "<system-reminder>", "<\\system-reminder>"],
  ["any line ending", "a\r\nb\rc", "a\nb\nc"],
  ["half a character", "a\uD800b", "a\uFFFDb"],
])("[SKL-1, MEM-2] %s is made harmless", (_, text, shown) => {
  expect(fencedText(text)).toBe(shown);
});

test.each([
  "/<skill-name> of <skills>",
  "👩‍👩‍👧 می‌خواهم",
  "if a < b && c > d:\n\tgo",
  "<div>é</div>",
])("[SKL-1, MEM-2] %j stays as it is", (text) => {
  expect(fencedText(text)).toBe(text);
});

test("[SKL-1, MEM-2] a million signs are read in one pass", () => {
  for (const sign of [" ", "<", "\u200d", "</"]) {
    const text = `<${sign.repeat(1_000_000)}`;
    expect(fencedText(text)).toHaveLength(text.length);
  }
});

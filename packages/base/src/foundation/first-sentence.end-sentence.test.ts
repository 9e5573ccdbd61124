import { expect, test } from "vitest";
import { endSentence } from "./first-sentence.ts";

test.each([
  ["no more", "no more."],
  ["Overloaded.", "Overloaded."],
  ["Why?", "Why?"],
  ['It said "no."', 'It said "no."'],
  ["It ended (twice)", "It ended (twice)."],
  ["with a line \n", "with a line."],
  ["", ""],
])("%j becomes %j [CLI-6]", (text, sentence) => {
  expect(endSentence(text)).toBe(sentence);
});

import { expect, it } from "vitest";
import { firstSentence } from "./first-sentence.ts";

it.each([
  ["Reviews SQL migrations for locks. Use when …", "Reviews SQL migrations for locks."],
  ["Tests pages, e.g. the shop of the customer. Use when …", "Tests pages, e.g. the shop of the customer."],
  ["Short. And more text that follows here. Last.", "Short. And more text that follows here."],
  ["Finds the page <example>user: x</example>", "Finds the page"],
  ["No stop at all", "No stop at all"],
  ["", ""],
])("of %j shows %j", (text, expected) => {
  expect(firstSentence(text)).toBe(expected);
});

import { expect, test } from "vitest";
import { readMentions } from "./conversation.ts";

test.each([
  ["look at @src/a.ts and @b.md.", [{ path: "src/a.ts" }, { path: "b.md" }]],
  ['@"my file.txt" first', [{ path: "my file.txt" }]],
  [
    "(see) @a.ts#L3-7, @a.ts#L9",
    [
      { path: "a.ts", offset: 3, limit: 5 },
      { path: "a.ts", offset: 9, limit: 1 },
    ],
  ],
  ["twice @a @a", [{ path: "a" }]],
  ["me@example.com and a@b", []],
  ["@ alone", []],
])("mentions in %j [DRP-1]", (text, mentions) => {
  expect(readMentions(text)).toEqual(mentions);
});

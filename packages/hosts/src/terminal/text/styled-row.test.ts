import { expect, test } from "vitest";
import { bold, colours, dim, plain } from "../screen/style.ts";
import { styledRow } from "./styled-row.ts";

test("colours and bold of a text become styles, and nothing else of its escape sequences stays [CLI-4]", () => {
  const row = styledRow(
    "\u001b[1;31mred\u001b[0m plain \u001b[38;5;2mgreen\u001b[39m\u001b[38;2;1;2;3m any\u001b[2J\u001b]0;title\u0007",
    dim,
  );
  expect(row.map(({ text, style }) => [text, style])).toEqual([
    ["red", bold | colours.red],
    [" plain ", dim],
    ["green", colours.green],
    [" any", plain],
  ]);
  expect(
    styledRow("\u001b[31", dim)
      .map(({ text }) => text)
      .join(""),
  ).not.toContain("\u001b");
});

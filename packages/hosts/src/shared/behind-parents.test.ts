import { expect, test } from "vitest";
import { behindParents } from "./behind-parents.ts";

const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id).join(" ");

test.each([
  ["keeps a list without levels", [{ id: "a" }, { id: "b", parentId: "main" }], "a b"],
  [
    "puts each agent behind the one that started it [NST-1]",
    [{ id: "g", parentId: "c" }, { id: "a" }, { id: "b" }, { id: "c", parentId: "a" }],
    "a c g b",
  ],
  [
    "keeps agents whose parents go in a circle",
    [
      { id: "a", parentId: "b" },
      { id: "b", parentId: "a" },
    ],
    "a b",
  ],
  ["keeps one that names itself", [{ id: "a", parentId: "a" }], "a"],
])("%s", (_title, list, expected) => {
  expect(ids(behindParents(list))).toBe(expected);
});

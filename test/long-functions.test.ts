import { expect, test } from "vitest";
import { readFunctions } from "./long-functions.ts";

test("functions of every form are found, with their lines", () => {
  const source = `
export async function one(
  a: string,
): { readonly b: string } {
  return { b: a };
}

export const two = (a: string): void => {
  if (a === "") {
    three();
  }
};

interface Shape {
  sign(
    a: string,
  ): void;
}

const table = {
  async three() {
    await four();
  },
  four: () => {
    five();
  },
};

test("a title", async () => {
  six();
});
`;
  expect(readFunctions(source)).toEqual([
    { name: "one", line: 2, lines: 5 },
    { name: "two", line: 8, lines: 5 },
    { name: "three", line: 21, lines: 3 },
    { name: "four", line: 24, lines: 3 },
    { name: "test", line: 29, lines: 3 },
  ]);
});

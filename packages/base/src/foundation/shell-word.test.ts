import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { shellWord } from "./shell-word.ts";

test("a word comes through a shell as it is, whatever it holds", () => {
  for (const word of ["plain", "my server", "a'b", "$(touch x)", "`id`", "; rm -rf .", "-n", "a\nb"]) {
    expect(execFileSync("/bin/sh", ["-c", `printf %s ${shellWord(word)}`], { encoding: "utf8" })).toBe(word);
  }
  expect(shellWord("my-server")).toBe("my-server");
});

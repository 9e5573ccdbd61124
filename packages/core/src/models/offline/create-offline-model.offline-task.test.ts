import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readOfflineTask } from "./create-offline-model.ts";

describe("[MDL-4] what the offline model takes a text for", () => {
  it.each([
    ["", { type: "map" }],
    ["what is here?", { type: "map" }],
    ["Give me an overview of this repository", { type: "map" }],
    ["hello", { type: "map" }],
    ["map src/tools", { type: "map", folder: "src/tools" }],
    ["What's in src?", { type: "map", folder: "src" }],
    ["Map the folder `src/a b`: which files", { type: "map", folder: "src/a" }],
    ["Map the folder `src/loop`: which files and folders it holds.", { type: "map", folder: "src/loop" }],
    ["Plan in which order a newcomer should read the folder `src`: name", { type: "map", folder: "src" }],
    ["explore the directory .", { type: "map", folder: "." }],
    ["where is createRuntime defined?", { type: "find", subject: "createRuntime" }],
    ["Where is the login handled?", { type: "find", subject: "login" }],
    ["find TODO", { type: "find", subject: "TODO" }],
    ["find the function parse_rule", { type: "find", subject: "parse_rule" }],
    ["who uses `Widget`?", { type: "find", subject: "Widget" }],
    ['search for "not found" in this repo', { type: "find", subject: "not found" }],
    ["usages of Foo::bar", { type: "find", subject: "Foo::bar" }],
    ["where is config.ts imported", { type: "find", subject: "config.ts" }],
    ["How does nextOfflineStep work?", { type: "find", subject: "nextOfflineStep" }],
    ["read src/index.ts", { type: "read", file: "src/index.ts" }],
    ["Summarise README.md, please", { type: "read", file: "README.md" }],
    ["summarize the README", { type: "read", file: "README" }],
    ["explain ./a/b.py.", { type: "read", file: "./a/b.py" }],
    ["what does Makefile do", { type: "read", file: "Makefile" }],
    ["package.json", { type: "read", file: "package.json" }],
  ])("%j is %j", (text, expected) => {
    expect(readOfflineTask(text).task).toEqual(expected);
  });

  it.each([
    ["Fix the bug in src/a.ts", true],
    ["please add a test", true],
    ["where is the fix", false],
    ["explain how to add a test", false],
  ])("%j asks for a change: %s", (text, expected) => {
    expect(readOfflineTask(text).wantsChange).toBe(expected);
  });

  it("takes every text for something, quickly", () => {
    const piece = fc.constantFrom(
      "where",
      "is",
      "the",
      "`",
      '"',
      "in",
      "folder",
      "a.b",
      "/",
      " ",
      "read",
      "…",
      "is used",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece).map((all) => all.join(" ")),
        ),
        (text) => {
          expect(["map", "find", "read"]).toContain(readOfflineTask(text).task.type);
        },
      ),
    );
    expect(readOfflineTask(`where is ${"the ".repeat(100_000)}`).task.type).toBe("map");
    expect(readOfflineTask(`read ${"a/".repeat(100_000)}`).task.type).toBeDefined();
  });
});

import { describe, expect, it } from "vitest";
import { languageOf, rankLanguages } from "./offline-answer.ts";
import { firstComment, headingsOf, importsOf, nameDefinedIn } from "./outline-of.ts";
import { readManifest, readReadme } from "./read-manifest.ts";

const numbered = (text: string) => text.split("\n").map((line, at) => ({ number: at + 1, text: line }));

describe("[MDL-4] extracting from files by their form", () => {
  it.each([
    ["export async function loadIt(a: string) {", "loadIt"],
    ["export default class Thing extends Other {", "Thing"],
    ["  def method(self):", "method"],
    ["pub(crate) fn run() {", "run"],
    ["func (s *Server) Start() error {", "Start"],
    ["type Name = string;", "Name"],
    ["export const value = 1;", "value"],
    ["deploy() {", "deploy"],
    ["#define LIMIT 5", "LIMIT"],
    ["CREATE TABLE IF NOT EXISTS users (", "users"],
    ["  const inner = 1;", undefined],
    ["return value;", undefined],
    ["// function in a comment", undefined],
    ["if (x) {", undefined],
  ])("%j names %j", (line, expected) => {
    expect(nameDefinedIn(line)).toBe(expected);
  });

  it("headings in code are none", () => {
    expect(headingsOf(numbered("# A\n```\n# no\n```\n## B ##")).map(({ name }) => name)).toEqual(["A", "B"]);
  });

  it.each([
    ["/** Says\n * hello. */\ncode", "Says hello."],
    ["#!/bin/sh\n# Does it.\n# Twice.\ncode\n# later", "Does it. Twice."],
    ['"""Module text."""\nimport x', "Module text."],
    ["code", undefined],
  ])("the first comment of %j is %j", (text, expected) => {
    expect(firstComment(numbered(text))).toBe(expected);
  });

  it("the needs of a file are found in the ways of several languages", () => {
    const text =
      'import a from "a";\nimport {\n  b,\n} from "b";\nconst c = require("c");\nfrom d.e import f\nuse g::h;';
    expect(importsOf(numbered(text))).toEqual(["a", "b", "c", "d.e", "g::h"]);
  });

  it("manifests give commands and entries, and broken ones nothing", () => {
    const json = {
      name: "n",
      description: "d",
      scripts: { test: "vitest" },
      bin: { n: "./bin/n.js" },
      exports: { ".": { types: "./x.d.ts", default: "./lib/x.js" } },
    };
    expect(readManifest("package.json", JSON.stringify(json))).toEqual({
      title: "n: d",
      commands: [["npm run test", "vitest"]],
      entries: ["bin/n.js", "lib/x.js"],
    });
    expect(readManifest("Makefile", "all: a\nA := 1\n.PHONY: x\ntest:\n\techo\n").commands).toEqual([
      ["make all", ""],
      ["make test", ""],
    ]);
    const toml = '[project]\nname = "p"\n[project.scripts]\nrun-it = "p:main"\n[other]\nx = "y"\n';
    expect(readManifest("pyproject.toml", toml)).toEqual({
      title: "p",
      commands: [["run-it", "p:main"]],
      entries: [],
    });
    expect(readManifest("go.mod", "module example.org/x\n").title).toBe("example.org/x");
    expect(readManifest("package.json", "{")).toEqual({ commands: [], entries: [] });
    expect(
      readManifest("package.json", `{"bin":${'{"a":'.repeat(5000)}1${"}".repeat(5000)}}`).entries,
    ).toEqual([]);
  });

  it("a README gives its title and its first paragraph, not its badges", () => {
    const text = "# Thing\n\n[![badge](x)](y)\n<p>html</p>\n\nThis thing does\nwhat it says.\n\nMore.";
    expect(readReadme(text.split("\n"))).toBe("Thing\nThis thing does what it says.");
  });

  it("languages are ranked by files, prose and data behind code", () => {
    expect(languageOf("a/b.TS")).toBe("TypeScript");
    expect(languageOf("Makefile")).toBeUndefined();
    expect(rankLanguages(["a.md", "b.md", "c.py", "d.json"])).toEqual([
      ["Python", 1],
      ["Markdown", 2],
      ["JSON", 1],
    ]);
  });
});

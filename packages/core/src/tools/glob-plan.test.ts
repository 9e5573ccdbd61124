import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { excludedFolders, globArguments, planGlob, splitGlobs } from "./glob-plan.ts";
import { createPathReader, createRecordReader, type GrepRecord } from "./grep-record.ts";

describe("a glob is parted into a folder and what is left", () => {
  test.each([
    ["*.ts", { folder: ".", pattern: "*.ts" }],
    ["./*.ts", { folder: ".", pattern: "/*.ts" }],
    ["**/*.ts", { folder: ".", pattern: "/**/*.ts" }],
    ["src/**/*.ts", { folder: "src", pattern: "/**/*.ts" }],
    ["src/a/b.ts", { folder: "src/a/b.ts" }],
    ["/etc/*.conf", { folder: "/etc", pattern: "/*.conf" }],
    ["/*.conf", { folder: "/", pattern: "/*.conf" }],
    ["../x/{a,b}.ts", { folder: "../x", pattern: "/{a,b}.ts" }],
    ["~/notes/*", { folder: "~/notes", pattern: "/*" }],
    ["app/[id]/page.ts", { folder: "app", pattern: "/[id]/page.ts" }],
  ])("%s", (pattern, plan) => {
    expect(planGlob(pattern)).toEqual(plan);
  });

  test.each([
    ["**", []],
    ["/**/*", []],
    ["*", ["--max-depth=1"]],
    ["*.ts", ["--glob=*.ts"]],
    ["!x", ["--glob=\\!x"]],
  ])("%s becomes %j", (pattern, result) => {
    expect(globArguments(pattern)).toEqual(result);
  });

  test.each([
    ["*.js,*.ts", ["*.js", "*.ts"]],
    ["*.{js,ts} !x", ["*.{js,ts}", "!x"]],
    ["**/*", []],
    ["", []],
  ])("the globs in %j are %j", (text, globs) => {
    expect(splitGlobs(text)).toEqual(globs);
  });

  test("a folder that the path names is not excluded", () => {
    expect(excludedFolders("/p/node_modules/x", [".git", "node_modules"])).toEqual(["--glob=!**/.git"]);
  });
});

describe("reading what ripgrep writes", () => {
  const output =
    '/a\u00001:x\n/a\u00002-y\n--\n/b\nc\u000010:z:1\r\n/n: binary file matches (found "\\0" byte around offset 1)\n/d\u00003\n';
  const records: GrepRecord[] = [
    { type: "line", found: { path: "/a", line: 1, text: "x", isMatch: true } },
    { type: "line", found: { path: "/a", line: 2, text: "y", isMatch: false } },
    { type: "gap" },
    { type: "line", found: { path: "/b\nc", line: 10, text: "z:1", isMatch: true } },
    { type: "binary", path: "/n" },
    { type: "count", path: "/d", count: 3 },
  ];

  test("gives the same records however it is cut", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: output.length }), (size) => {
        const read = createRecordReader();
        const found: GrepRecord[] = [];
        for (let at = 0; at < output.length; at += size) found.push(...read(output.slice(at, at + size)));
        expect(found).toEqual(records);
      }),
    );
  });

  test("paths end at NUL", () => {
    const read = createPathReader();
    expect([read("/a\0/b"), read("c\0"), read("/d")]).toEqual([["/a"], ["/bc"], []]);
  });
});

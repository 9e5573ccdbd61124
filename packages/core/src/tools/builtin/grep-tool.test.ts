import { execFileSync } from "node:child_process";
import { renameSync, symlinkSync } from "node:fs";
import { readFile, symlink, truncate, utimes } from "node:fs/promises";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { specificationOf } from "../json-schema-of.ts";
import { grepTool } from "./grep-tool.ts";

let space: Workspace;
beforeEach(async () => {
  space = await createWorkspace();
});
afterEach(() => space[Symbol.asyncDispose]());

const tool = grepTool;
const grep = (pattern: string, more: object = {}) => space.call(tool, { pattern, ...more });
const content = (pattern: string, more: object = {}) => grep(pattern, { output_mode: "content", ...more });

describe("Grep lists files", () => {
  test("with a match, newest first", async () => {
    await space.write("a.ts", "needle");
    await utimes(await space.write("src/b.ts", "needle"), 1_600_000_000, 1_600_000_000);
    await space.write("c.ts", "nothing");
    const { text, outcome } = await grep("needle");
    expect(text).toBe("a.ts\nsrc/b.ts");
    expect(outcome.data).toEqual({
      mode: "files_with_matches",
      numFiles: 2,
      filenames: ["a.ts", "src/b.ts"],
    });
  });

  test("by glob and by type", async () => {
    for (const name of ["a.ts", "b.js", "c.py", "src/d.ts"]) await space.write(name, "x");
    const files = async (more: object) => (await grep("x", more)).text.split("\n").toSorted();
    expect(await files({ glob: "*.ts" })).toEqual(["a.ts", "src/d.ts"]);
    expect(await files({ glob: "src/**/*.ts" })).toEqual(["src/d.ts"]);
    expect(await files({ glob: "*.{js,py}, !c.*" })).toEqual(["b.js"]);
    expect(await files({ type: "py" })).toEqual(["c.py"]);
    expect(await files({ path: "src" })).toEqual(["src/d.ts"]);
  });
});

describe("Grep shows content", () => {
  test("with paths and line numbers, in the order of paths", async () => {
    await space.write("b.txt", "one\ntwo needle\r\n");
    await space.write("a/c.txt", "needle: 😀 needle\n");
    const { text, outcome } = await content("needle");
    expect(text).toBe("a/c.txt:1:needle: 😀 needle\nb.txt:2:two needle");
    expect(outcome.data).toMatchObject({
      mode: "content",
      numFiles: 2,
      filenames: ["a/c.txt", "b.txt"],
      content: text,
      numLines: 2,
      numMatches: 2,
    });
    expect((await content("needle", { "-n": false, path: "b.txt" })).text).toBe("b.txt:two needle");
  });

  test("with lines around, given in any of the ways", async () => {
    await space.write("a.txt", "1\n2\nX\n4\n5\n6\n7\nX\n");
    expect((await content("X", { "-C": "1" })).text).toBe(
      "a.txt-2-2\na.txt:3:X\na.txt-4-4\n--\na.txt-7-7\na.txt:8:X",
    );
    expect((await content("X", { context: 1 })).text).toContain("a.txt-2-2");
    expect((await content("X", { "-A": 1, "-B": 0 })).text).toBe("a.txt:3:X\na.txt-4-4\n--\na.txt:8:X");
    await space.write("b.txt", "X");
    expect((await content("X", { "-B": 1 })).text).toContain("a.txt:8:X\n--\nb.txt:1:X");
  });

  test("without regard to capitals, only what matches, over several lines", async () => {
    await space.write("a.txt", "Foo bar\nbaz foo");
    expect((await content("FOO", { "-i": true, "-o": "true" })).text).toBe("a.txt:1:Foo\na.txt:2:foo");
    expect((await content("bar.baz", { multiline: true })).text).toBe("a.txt:1:Foo bar\na.txt:2:baz foo");
    expect((await content("bar.baz")).text).toBe("No matches.");
    expect((await content("bar\\nbaz")).text).toContain("a.txt:1:");
  });

  test("for patterns that only the second engine knows, and for those that look like options", async () => {
    await space.write("a.txt", "foobar\n--files\n");
    expect((await content("(?<=foo)bar")).text).toBe("a.txt:1:foobar");
    expect((await content("--files")).text).toBe("a.txt:2:--files");
  });

  test("in bounds: results, lines, everything", async () => {
    await space.write("a.txt", "x\n".repeat(300));
    const first = await content("x");
    expect(first.text.split("\n").filter((line) => line.endsWith(":x"))).toHaveLength(250);
    expect(first.text).toContain(
      "[Results 1 to 250 of 300. Continue with offset 250, or narrow the search.]",
    );
    const rest = await content("x", { offset: 250 });
    expect(rest.text).toMatch(/^a.txt:251:x\n/);
    expect(rest.outcome.data).toMatchObject({ numLines: 50, appliedOffset: 250 });
    expect((await content("x", { head_limit: 2 })).text).toContain("Results 1 to 2 of 300.");
    expect((await content("x", { head_limit: 0 })).text).toContain("a.txt:300:x");
    expect((await content("x", { offset: 900 })).text).toContain("past the last");
    await space.write("wide.txt", `y${"😀".repeat(2000)}`);
    const wide = (await content("y")).text;
    expect(wide.length).toBeLessThan(1200);
    expect(wide.isWellFormed()).toBe(true);
  });

  test("of which the whole is kept in a file when it is too long", async () => {
    await space.write("a.txt", `${"word ".repeat(80)}\n`.repeat(200));
    const context = space.context();
    const { text } = await space.call(
      tool,
      { pattern: "word", output_mode: "content", head_limit: 0 },
      context,
    );
    expect(text.length).toBeLessThan(31_000);
    const file = `${context.outputDirectory}/${context.callId}.txt`;
    expect(text).toContain(file);
    expect((await readFile(file, "utf8")).split("\n")).toHaveLength(200);
  });
});

describe("Grep counts", () => {
  test("matching lines per file and in all", async () => {
    await space.write("b.txt", "x x\nx\n");
    await space.write("a.txt", "x\n");
    const { text, outcome } = await grep("x", { output_mode: "count" });
    expect(text).toBe("a.txt:1\nb.txt:2\n\n[3 matching lines in 2 files.]");
    expect(outcome.data).toMatchObject({ mode: "count", numFiles: 2, numMatches: 3 });
  });
});

describe("Grep searches only where it should", () => {
  test("not in ignored files, version control or binary files, but in a file that is named", async () => {
    await space.write(".gitignore", "dist\n");
    for (const name of ["a.txt", "dist/b.txt", ".git/c.txt", ".hidden"]) await space.write(name, "needle");
    await space.write("d.bin", "needle\0");
    expect((await grep("needle")).text.split("\n").toSorted()).toEqual([".hidden", "a.txt"]);
    expect((await grep("needle", { path: "dist/b.txt" })).text).toBe("dist/b.txt");
    expect((await grep("needle", { path: "dist" })).text).toBe("dist/b.txt");
    expect((await content("needle", { path: "d.bin" })).text).toContain("Binary files that match: d.bin.");
  });

  test("not through links out of the path", async () => {
    await space.write("../outside/o.txt", "needle");
    await symlink(`${space.root}/outside`, space.path("way-out"));
    await symlink(`${space.root}/outside/o.txt`, space.path("o-link.txt"));
    expect((await grep("needle")).text).toBe("No matches.");
    expect((await grep("needle", { glob: "../**" })).text).toBe("No matches.");
    expect((await grep("needle", { path: "way-out" })).text).toBe(`${space.root}/outside/o.txt`);
  });

  test("and shows nothing about what may not be read, not even whether it matches [PRM-1]", async () => {
    await space.write("a.txt", "needle");
    await space.write("secret.txt", `needle\nkey=42\n${"many of these\n".repeat(30_000)}`);
    await space.write("secret.bin", "needle\0key=42\n");
    const context = space.context("main", { mayRead: (path) => !path.includes("secret") });
    const search = async (pattern: string, output_mode: string) => {
      const { text, outcome } = await space.call(tool, { pattern, output_mode, "-C": 1 }, context);
      expect(JSON.stringify(outcome)).not.toContain("secret");
      return text;
    };
    for (const output_mode of ["content", "count", "files_with_matches"]) {
      expect(await search("needle", output_mode)).toMatch(/^a\.txt/);
      const nothing = await search("key=43", output_mode);
      expect(nothing).toBe("No matches.\n\n[Files that rules deny reading were not searched.]");
      for (const pattern of ["key=42", "many", "key=4[0-9]"])
        expect(await search(pattern, output_mode), pattern).toBe(nothing);
    }
  });

  test("and never waits for a pipe", async () => {
    execFileSync("mkfifo", [space.path("pipe")]);
    await space.write("a.txt", "needle");
    expect((await grep("needle")).text).toBe("a.txt");
    expect(await grep("needle", { path: "pipe" })).toMatchObject({ isError: true });
    expect(await grep("needle", { path: "/dev" })).toMatchObject({ isError: true });
  });

  test("also in files of 50 MB", async () => {
    await truncate(await space.write("huge.log", "needle\n"), 50 * 1024 * 1024);
    expect((await content("needle", { path: "huge.log" })).text).toContain("huge.log");
  });
});

test("Grep that is stopped in the middle leaves no process behind", async () => {
  for (let at = 0; at < 20; at += 1) await space.write(`f${at}.txt`, "a b\n".repeat(200_000));
  const controller = new AbortController();
  const context = space.context("main", { signal: controller.signal });
  const running = space.call(tool, { pattern: "(a|b)+ [^c]", output_mode: "count" }, context);
  setImmediate(() => controller.abort(new Error("stopped")));
  await expect(running).rejects.toThrow("stopped");
  expect(livingCommands(space.root)).toEqual([]);
});

describe("Grep explains", () => {
  test.each([
    ["foo(", {}, "not a valid regular expression: unclosed group"],
    ["x", { type: "klingon" }, "unrecognized file type: klingon"],
    ["x", { glob: "*.{a" }, "glob"],
    ["x", { path: "nowhere" }, "does not exist"],
  ])("%j with %j", async (pattern, more, reason) => {
    const { text, isError } = await grep(pattern, more);
    expect(isError).toBe(true);
    expect(text).toContain(reason);
    expect(text.length).toBeLessThan(400);
  });

  test("its input to models as plain types", () => {
    const { properties, required } = specificationOf(tool).inputSchema as {
      properties: Record<string, unknown>;
      required: string[];
    };
    expect(required).toEqual(["pattern"]);
    expect(properties["-A"]).toMatchObject({ type: "number" });
    expect(properties["-i"]).toMatchObject({ type: "boolean" });
    expect(properties["output_mode"]).toMatchObject({ enum: ["content", "files_with_matches", "count"] });
  });
});

test.skipIf(process.platform === "win32").each(["work", "work/src", "work/src/own.txt"])(
  "what is swapped for a link when the call has been judged is not searched: %s [PRM-10]",
  async (path) => {
    await space.write("work/src/own.txt", "needle");
    await space.write("../outside/src/own.txt", "needle of others");
    const approvedPaths = [space.path(path)];
    // The last look at the path before the search.
    approvedPaths.includes = () => {
      renameSync(space.path("work"), space.path("aside"));
      symlinkSync(space.path("../outside"), space.path("work"));
      return true;
    };
    const context = { ...space.context(), approvedPaths };
    const given = { pattern: "needle", path, output_mode: "content" };
    expect((await space.call(tool, given, context)).text).toContain("pointed to a different place");
  },
);

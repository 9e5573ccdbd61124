import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeText, type TextShape } from "../decode-text.ts";
import { editTool } from "./edit-tool.ts";
import { readTool } from "./read-tool.ts";

let space: Workspace;
beforeEach(async () => {
  space = await createWorkspace();
});
afterEach(() => space[Symbol.asyncDispose]());

const tool = editTool;
const read = (file_path: string, agent = "main") => space.call(readTool, { file_path }, space.context(agent));
const edit = (file_path: string, old_string: string, new_string: string, more: object = {}, agent = "main") =>
  space.call(tool, { file_path, old_string, new_string, ...more }, space.context(agent));
const text = (name: string) => readFile(space.path(name), "utf8");

async function given(name: string, content: string | Uint8Array): Promise<void> {
  await space.write(name, content);
  await read(name);
}

describe("Edit replaces text", () => {
  test("that occurs once, and gives back where and what", async () => {
    await given("a.ts", "1\n2\nthree\n4\n");
    const edited = await edit("a.ts", "three", "3\n3b");
    expect(edited.text).toBe(`Edited ${space.path("a.ts")} at line 3 (2 lines added, 1 removed).`);
    expect(await text("a.ts")).toBe("1\n2\n3\n3b\n4\n");
    expect(edited.outcome.data).toMatchObject({
      filePath: space.path("a.ts"),
      oldString: "three",
      newString: "3\n3b",
      originalFile: "1\n2\nthree\n4\n",
      structuredPatch: [
        { oldStart: 1, oldLines: 4, newLines: 5, lines: [" 1", " 2", "-three", "+3", "+3b", " 4"] },
      ],
    });
  });

  test("with signs that mean something elsewhere", async () => {
    await given("a.ts", "cost: $5 (a|b)*");
    await edit("a.ts", "$5 (a|b)*", "$& $1 $$");
    expect(await text("a.ts")).toBe("cost: $& $1 $$");
  });

  test("several times on one reading", async () => {
    await given("a.ts", "a b c");
    for (const letter of ["a", "b", "c"])
      expect((await edit("a.ts", letter, `${letter}!`)).isError).toBe(false);
    expect(await text("a.ts")).toBe("a! b! c!");
  });

  test("everywhere with replace_all, also when that is given as text", async () => {
    await given("a.ts", "x x x");
    expect((await edit("a.ts", "x", "yx", { replace_all: "true" })).text).toContain("3 places");
    expect(await text("a.ts")).toBe("yx yx yx");
  });

  test("and refuses where it occurs more than once, also when places overlap", async () => {
    await given("a.ts", "x\nx\naaa");
    expect((await edit("a.ts", "x", "y")).text).toContain("occurs 2 times");
    expect((await edit("a.ts", "x", "y")).text).toContain("lines 1, 2");
    expect((await edit("a.ts", "aa", "b")).text).toContain("occurs 2 times");
    expect(await text("a.ts")).toBe("x\nx\naaa");
  });

  test("and explains why nothing was found", async () => {
    await given("a.ts", "\tif (x) {\n\t\treturn;\n\t}\n");
    const { text: said, isError } = await edit("a.ts", "    if (x) {\n        return;", "y");
    expect(isError).toBe(true);
    expect(said).toContain("another indentation");
    expect(said).toContain("1\t\tif (x) {");
  });
});

describe("Edit keeps how a file is written", () => {
  test.each<[string, TextShape]>([
    ["UTF-8 with a mark", { encoding: "utf-8", bom: true }],
    ["UTF-16 little", { encoding: "utf-16le", bom: true }],
    ["UTF-16 big", { encoding: "utf-16be", bom: true }],
  ])("%s", async (_name, shape) => {
    await given("a.txt", encodeText("eins\nzwei 😀\n", shape));
    expect((await edit("a.txt", "eins", "ein")).isError).toBe(false);
    expect(await readFile(space.path("a.txt"))).toEqual(encodeText("ein\nzwei 😀\n", shape));
  });

  test("CRLF, though lines are given with LF", async () => {
    await given("a.txt", "one\r\ntwo\r\nthree\r\n");
    expect((await edit("a.txt", "one\ntwo\n", "1\n2\n2b\n")).isError).toBe(false);
    expect(await text("a.txt")).toBe("1\r\n2\r\n2b\r\nthree\r\n");
  });

  test("and refuses to write back what it could not read exactly", async () => {
    await given("latin.txt", Buffer.from([0x66, 0xfc, 0x72, 0x0a, 0x61]));
    expect(await edit("latin.txt", "a", "b")).toMatchObject({
      isError: true,
      text: expect.stringContaining("utf-8"),
    });
    expect(await readFile(space.path("latin.txt"))).toEqual(Buffer.from([0x66, 0xfc, 0x72, 0x0a, 0x61]));
  });

  test("an edit and its reverse restore every byte", async () => {
    const unit = fc.constantFrom("a", "b", " ", "\n", "😀", "é", "\t", "$&");
    const part = fc.string({ unit, maxLength: 12 });
    const shapes = fc.constantFrom<TextShape>(
      { encoding: "utf-8", bom: false },
      { encoding: "utf-8", bom: true },
      { encoding: "utf-16le", bom: true },
    );
    let count = 0;
    await fc.assert(
      fc.asyncProperty(
        part,
        part,
        part,
        part,
        shapes,
        fc.boolean(),
        async (before, old, fresh, after, shape, crlf) => {
          const occurrences = (whole: string, wanted: string) => whole.split(wanted).length - 1;
          fc.pre(old !== "" && fresh !== "" && old !== fresh);
          fc.pre(
            occurrences(`\n${before}${old}${after}`, old) === 1 &&
              occurrences(`\n${before}${fresh}${after}`, fresh) === 1,
          );
          const ends = (value: string) => (crlf ? value.replaceAll("\n", "\r\n") : value);
          const name = `file-${++count}.txt`;
          const original = encodeText(ends(`\n${before}${old}${after}`), shape);
          await given(name, original);
          const there = await edit(name, old, fresh);
          const back = await edit(name, fresh, old);
          // Places that overlap count as more than one, which splitting does not see.
          if (there.isError || back.isError) {
            expect(`${there.text}${back.text}`).toContain("occurs 2 times");
            return;
          }
          expect(await readFile(space.path(name))).toEqual(original);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe("Edit makes new files", () => {
  test("from an empty old_string, only where none exists", async () => {
    expect((await edit("new/a.txt", "", "content")).text).toContain("Made");
    expect(await text("new/a.txt")).toBe("content");
    expect(await edit("new/a.txt", "", "other")).toMatchObject({
      isError: true,
      text: expect.stringContaining("exists"),
    });
    expect(await edit("missing.txt", "a", "b")).toMatchObject({
      isError: true,
      text: expect.stringContaining("does not exist"),
    });
    expect(await text("new/a.txt")).toBe("content");
  });
});

describe("Edit refuses", () => {
  test("files that were not read, binary files, folders, and edits that change nothing", async () => {
    await space.write("unread.txt", "a");
    expect((await edit("unread.txt", "a", "b")).text).toContain("not read");
    await given("same.txt", "a");
    expect((await edit("same.txt", "a", "a")).text).toContain("same");
    await mkdir(space.path("folder"));
    expect((await edit("folder", "a", "b")).text).toContain("folder");
  });

  test("a base that changed on disk, and one that another agent changed, by name", async () => {
    await given("a.txt", "a b");
    await space.write("a.txt", "a b c");
    expect((await edit("a.txt", "a", "x")).text).toContain("changed on disk");
    await read("a.txt");
    await read("a.txt", "painter");
    await edit("a.txt", "b", "B", {}, "painter");
    expect((await edit("a.txt", "a", "x")).text).toContain("changed by the agent painter");
    await read("a.txt");
    expect((await edit("a.txt", "a", "x")).isError).toBe(false);
    expect(await text("a.txt")).toBe("x B c");
  });

  test("a change through a link counts for the file itself", async () => {
    await given("real.txt", "a");
    await symlink("real.txt", space.path("link.txt"));
    await read("link.txt", "painter");
    expect((await edit("link.txt", "a", "b", {}, "painter")).isError).toBe(false);
    expect((await edit("real.txt", "a", "c")).text).toContain("changed by the agent painter");
  });
});

describe("many edits of one file at the same time", () => {
  const slots = Array.from({ length: 50 }, (_, at) => `slot-${at}.`);

  test("all land when one agent makes them", async () => {
    await given("a.txt", slots.join("\n"));
    const edits = await Promise.all(slots.map((slot) => edit("a.txt", slot, `done-${slot}`)));
    expect(edits.filter(({ isError }) => isError)).toEqual([]);
    expect(await text("a.txt")).toBe(slots.map((slot) => `done-${slot}`).join("\n"));
    expect(await readdir(space.project)).toEqual(["a.txt"]);
  });

  test("land or are refused when fifty agents make them, and none is lost", async () => {
    await space.write("a.txt", slots.join("\n"));
    await Promise.all(slots.map((_, at) => read("a.txt", `agent-${at}`)));
    const edits = await Promise.all(
      slots.map((slot, at) => edit("a.txt", slot, `done-${slot}`, {}, `agent-${at}`)),
    );
    const landed = slots.filter((_, at) => edits[at]?.isError === false);
    const result = await text("a.txt");
    expect(landed.length).toBeGreaterThan(0);
    expect(slots.filter((slot) => result.includes(`done-${slot}`))).toEqual(landed);
    for (const { isError, text: said } of edits)
      if (isError) expect(said).toMatch(/changed by the agent agent-\d+/);
  });

  test("all land in the end when each agent reads again after a refusal", async () => {
    await space.write("a.txt", slots.join("\n"));
    await Promise.all(
      slots.slice(0, 12).map(async (slot, at) => {
        for (let tries = 0; tries < 100; tries += 1) {
          await read("a.txt", `agent-${at}`);
          if (!(await edit("a.txt", slot, `done-${slot}`, {}, `agent-${at}`)).isError) return;
        }
      }),
    );
    const result = await text("a.txt");
    expect(slots.filter((slot) => result.includes(`done-${slot}`))).toEqual(slots.slice(0, 12));
  });
});

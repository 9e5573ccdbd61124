import { execFileSync } from "node:child_process";
import { chmod, mkdir, open, symlink, truncate } from "node:fs/promises";
import { makePdf } from "@retinue/testing/make-pdf.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeText } from "../decode-text.ts";
import { readTool } from "./read-tool.ts";

let space: Workspace;
beforeEach(async () => {
  space = await createWorkspace();
});
afterEach(() => space[Symbol.asyncDispose]());

const tool = readTool;
const read = (file_path: string, more: object = {}) => space.call(tool, { file_path, ...more });
const seen = (name: string) => space.context().files.seen(space.path(name));

describe("Read shows text", () => {
  test("with numbers before the lines, and remembers that it was seen whole", async () => {
    const path = await space.write("a.txt", "one\ntwo\n");
    const { text, outcome } = await read("a.txt");
    expect(text).toBe("1\tone\n2\ttwo");
    expect(outcome.data).toEqual({
      type: "text",
      file: { filePath: path, content: "one\ntwo", numLines: 2, startLine: 1, totalLines: 2 },
    });
    expect(seen("a.txt")).toMatchObject({ partial: false, digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  });

  test("from an offset, as many lines as asked, given as numbers or as text", async () => {
    await space.write("a.txt", Array.from({ length: 10 }, (_, at) => `line ${at + 1}`).join("\n"));
    const { text } = await read("a.txt", { offset: "4", limit: 2, pages: null });
    expect(text).toBe("4\tline 4\n5\tline 5\n\n[Lines 4 to 5 of 10. Continue with offset 6.]");
    expect(seen("a.txt")).toMatchObject({ partial: true, lines: [[4, 5]] });
    expect((await read("a.txt", { offset: 11 })).text).toContain("has 10 lines");
  });

  test("2000 lines of 2000 characters unless more is asked, and says how to continue", async () => {
    await space.write("long.txt", `${"😀".repeat(1500)}\n${"x\n".repeat(2500)}`);
    const { text } = await read("long.txt");
    expect(text).toContain(`1\t${"😀".repeat(1000)}… [line cut, 1000 more characters]`);
    expect(text).toContain("[Lines 1 to 2000 of 2501. Continue with offset 2001.]");
  });

  test("no more characters than fit, unless large answers are allowed", async () => {
    await space.write("wide.txt", `${"x".repeat(1000)}\n`.repeat(300));
    const { text } = await read("wide.txt");
    expect(text.length).toBeLessThan(101_000);
    expect(text).toContain("Grep");
    expect(text).toContain("Continue with offset 100.");
    expect((await read("wide.txt", { allow_large: "true" })).text.length).toBeGreaterThan(300_000);
  });

  test("an empty file is reported as empty", async () => {
    await space.write("empty", "");
    expect(await read("empty")).toMatchObject({ text: `${space.path("empty")} is empty.`, isError: false });
  });

  test("UTF-16, byte order marks and CRLF are read as the text they are", async () => {
    await space.write("wide.txt", encodeText("a\r\nü\r\n", { encoding: "utf-16le", bom: true }));
    await space.write("mark.txt", "\ufeffa\r\nb");
    expect((await read("wide.txt")).text).toBe("1\ta\n2\tü\n\n[The file is utf-16le; Edit keeps that.]");
    expect((await read("mark.txt")).text).toBe("1\ta\n2\tb");
  });

  test("bytes that are no valid text are shown as replaced and noted", async () => {
    await space.write("latin.txt", Buffer.from([0x66, 0xfc, 0x72]));
    expect((await read("latin.txt")).text).toMatch(/^1\tf\ufffdr\n\n\[Some bytes are not valid utf-8/);
  });
});

describe("Read refuses what it cannot show", () => {
  test("a folder, with the way to list it", async () => {
    await mkdir(space.path("src"));
    expect(await read("src")).toMatchObject({ isError: true, text: expect.stringContaining("Glob") });
  });

  test("a missing file, with the names that come near", async () => {
    await space.write("src/config.ts", "");
    expect((await read("src/confg.ts")).text).toContain("Did you mean src/config.ts?");
    expect((await read("src/config.js")).text).toContain("Did you mean src/config.ts?");
    expect((await read("nowhere/deep/x.ts")).text).toContain(
      `the nearest folder that does is ${space.project}.`,
    );
  });

  test("names that may not be read are not suggested", async () => {
    await space.write(".env", "");
    const context = space.context("main", { mayRead: (path) => !path.endsWith(".env") });
    const { text } = await space.call(tool, { file_path: ".envv" }, context);
    expect(text).not.toContain("Did you mean");
  });

  test("a binary file", async () => {
    await space.write("program", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1]));
    expect(await read("program")).toMatchObject({ isError: true, text: expect.stringContaining("binary") });
  });

  test("a named pipe, without waiting for a writer", async () => {
    execFileSync("mkfifo", [space.path("pipe")]);
    expect(await read("pipe")).toMatchObject({ isError: true, text: expect.stringContaining("named pipe") });
  });

  test.each(["/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/kmsg"])("%s", async (path) => {
    expect(await read(path)).toMatchObject({ isError: true, text: expect.stringContaining("system") });
  });

  test("a link to such a place", async () => {
    await symlink("/proc/self/environ", space.path("innocent.txt"));
    expect(await read("innocent.txt")).toMatchObject({ isError: true });
    await symlink("/dev/zero", space.path("zero"));
    expect(await read("zero")).toMatchObject({ isError: true });
  });

  test("a NUL in the path, an empty path and links in a circle", async () => {
    await symlink("b", space.path("a"));
    await symlink("a", space.path("b"));
    for (const path of ["a\0b", "", "a"]) expect((await read(path)).isError).toBe(true);
  });

  test.runIf(process.getuid?.() !== 0)("a file that the system does not let it open", async () => {
    await chmod(await space.write("secret", "x"), 0);
    expect(await read("secret")).toMatchObject({ isError: true, text: expect.stringContaining("denied") });
  });
});

describe("Read follows links and the home directory", () => {
  test("what was read through a link is remembered by its real path", async () => {
    await space.write("real.txt", "a");
    await symlink("real.txt", space.path("link.txt"));
    expect((await read("link.txt")).text).toBe("1\ta");
    expect(seen("real.txt")).toBeDefined();
    await symlink("gone.txt", space.path("dangling.txt"));
    expect((await read("dangling.txt")).text).toContain("does not exist");
  });

  test("~ is the home of the environment", async () => {
    await space.write("../home/notes.txt", "mine");
    expect((await read("~/notes.txt")).text).toBe("1\tmine");
    expect(tool.pathsOf?.({ file_path: "~/x" }, "/p", "/home/ada")).toEqual(["/home/ada/x"]);
  });
});

describe("Read does not load huge files", () => {
  test("the first lines of 50 MB are shown from the first bytes", async () => {
    const path = await space.write("huge.log", "line\n".repeat(5000));
    await truncate(path, 50 * 1024 * 1024);
    const { text } = await read("huge.log", { limit: 3 });
    expect(text).toMatch(
      /^1\tline\n2\tline\n3\tline\n\n\[Lines 1 to 3\. Continue with offset 4\. The file has 50 MB/,
    );
    expect(seen("huge.log")).toMatchObject({ partial: true, digest: expect.stringMatching(/^size:/) });
  });

  test("a line without end does not fill the memory, and characters at the joints stay whole", async () => {
    const path = await space.write("line.txt", "a");
    await using file = await open(path, "a");
    const part = Buffer.from("😀".repeat(64 * 1024));
    for (let at = 0; at < 68; at += 1) await file.write(part);
    const { text } = await read("line.txt");
    expect(text).toContain("line cut");
    expect(text).not.toContain("\ufffd");
  });

  test("stopping ends it", async () => {
    await truncate(await space.write("huge.log", "a\n"), 50 * 1024 * 1024);
    const context = space.context("main", { signal: AbortSignal.abort(new Error("stopped")) });
    await expect(space.call(tool, { file_path: "huge.log" }, context)).rejects.toThrow("stopped");
  });
});

describe("Read shows images", () => {
  const png = (width: number, height: number, padding = 0) => {
    const bytes = Buffer.alloc(33 + padding);
    bytes.write("89504e470d0a1a0a0000000d49484452", "hex");
    bytes.writeUInt32BE(width, 16);
    bytes.writeUInt32BE(height, 20);
    return bytes;
  };

  test("as image blocks, whatever the file is called", async () => {
    await space.write("picture.txt", png(4, 3));
    const { outcome } = await read("picture.txt");
    expect(outcome.content).toMatchObject([
      { type: "text", text: expect.stringContaining("4 × 3 pixels") },
      {
        type: "image",
        source: { type: "base64", media_type: "image/png", data: png(4, 3).toString("base64") },
      },
    ]);
    expect(JSON.stringify(outcome.data)).not.toContain("base64");
  });

  test("but not those that a provider would reject", async () => {
    await space.write("wide.png", png(9000, 10));
    await space.write("heavy.png", png(10, 10, 4_000_000));
    await space.write("broken.png", png(10, 10).subarray(0, 18));
    for (const [name, reason] of [
      ["wide.png", "9000 × 10"],
      ["heavy.png", "bytes"],
      ["broken.png", "damaged"],
    ]) {
      expect(await read(name ?? "")).toMatchObject({
        isError: true,
        text: expect.stringContaining(reason ?? ""),
      });
    }
  });
});

describe("Read shows PDF files", () => {
  test("page by page, or the pages asked for", async () => {
    await space.write("paper.pdf", makePdf(["First page", "Second page", ""]));
    const all = await read("paper.pdf");
    expect(all.text).toContain("--- page 1 of 3 ---\nFirst page");
    expect(all.text).toContain("--- page 3 of 3 ---\n(no text");
    const second = await read("paper.pdf", { pages: "2" });
    expect(second.text).toContain("Second page");
    expect(second.text).not.toContain("First page");
    expect(second.outcome.data).toMatchObject({
      type: "pdf",
      file: { totalPages: 3, firstPage: 2, lastPage: 2 },
    });
  });

  test("the first 20 pages of a long one, and how to continue", async () => {
    await space.write("book.pdf", makePdf(Array.from({ length: 25 }, (_, at) => `Page ${at + 1}`)));
    expect((await read("book.pdf")).text).toContain('[5 more pages; continue with pages "21-".]');
    expect(await read("book.pdf", { pages: "40" })).toMatchObject({ isError: true });
  });

  test("a damaged one is explained", async () => {
    await space.write("bad.pdf", "%PDF-1.4\nnothing of the kind");
    expect(await read("bad.pdf")).toMatchObject({ isError: true, text: expect.stringContaining("as PDF") });
  });
});

describe("Read shows notebooks", () => {
  test("as cells with their ids and shortened outputs", async () => {
    const notebook = {
      nbformat: 4,
      nbformat_minor: 5,
      metadata: { language_info: { name: "python" } },
      cells: [
        { cell_type: "markdown", id: "intro", metadata: {}, source: ["# Title\n", "text"] },
        {
          cell_type: "code",
          metadata: {},
          source: "print('x')",
          outputs: [
            { output_type: "stream", text: ["y".repeat(5000)] },
            { output_type: "display_data", data: { "image/png": "iVBORw0", "text/plain": "<Figure>" } },
            { output_type: "error", ename: "E", evalue: "v", traceback: ["\u001b[31mboom\u001b[0m"] },
          ],
        },
      ],
    };
    await space.write("n.ipynb", JSON.stringify(notebook));
    const { text, outcome } = await read("n.ipynb");
    expect(text).toContain("=== cell intro (markdown) ===\n# Title\ntext");
    expect(text).toContain("=== cell cell-1 (code, python) ===\nprint('x')");
    expect(text).toContain("characters left out");
    expect(text).toContain("<Figure>\n(image/png, 7 characters of data, not shown)");
    expect(text).toContain("[output]\nboom");
    expect(text.length).toBeLessThan(3000);
    expect(outcome.data).toMatchObject({ type: "notebook", file: { cells: [{ cell_id: "intro" }, {}] } });
  });

  test("a broken one as the text it is", async () => {
    await space.write("n.ipynb", "{ broken");
    expect((await read("n.ipynb")).text).toBe("1\t{ broken");
  });
});

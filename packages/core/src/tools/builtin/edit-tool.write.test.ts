import { existsSync } from "node:fs";
import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeTool } from "./edit-tool.ts";
import { readTool } from "./read-tool.ts";

let space: Workspace;
beforeEach(async () => {
  space = await createWorkspace();
});
afterEach(() => space[Symbol.asyncDispose]());

const tool = writeTool;
const write = (file_path: string, content: string, agent = "main") =>
  space.call(tool, { file_path, content }, space.context(agent));
const read = (file_path: string, more: object = {}, agent = "main") =>
  space.call(readTool, { file_path, ...more }, space.context(agent));
const bytes = (name: string) => readFile(space.path(name), "utf8");

describe("Write makes files", () => {
  test("with the folders above them, exactly as given", async () => {
    const { text, outcome } = await write("a/b/c.txt", "one\r\ntwo");
    expect(text).toBe(`Made ${space.path("a/b/c.txt")} (2 lines).`);
    expect(await bytes("a/b/c.txt")).toBe("one\r\ntwo");
    expect(outcome.data).toMatchObject({
      type: "create",
      filePath: space.path("a/b/c.txt"),
      structuredPatch: [{ oldStart: 0, oldLines: 0, newStart: 1, newLines: 2 }],
    });
    expect(await readdir(space.path("a/b"))).toEqual(["c.txt"]);
  });

  test("and may write a file again that it made itself", async () => {
    await write("a.txt", "1\n");
    expect((await write("a.txt", "1\n2\n")).text).toBe(
      `Replaced ${space.path("a.txt")} (1 line added, 0 removed).`,
    );
    expect((await write("a.txt", "1\n2\n")).text).toContain("no line is different");
  });
});

test("a half-written file is noted before it is made, and forgotten when it is gone [TRN-2]", async () => {
  const noted: string[] = [];
  const noteTemporary = (path: string) => {
    noted.push(`${path} ${existsSync(path)}`);
    return () => void noted.push(`forgotten ${existsSync(path)}`);
  };
  const context = { ...space.context("main"), noteTemporary };
  await space.call(tool, { file_path: "a.txt", content: "1\n" }, context);
  expect(noted).toEqual([expect.stringMatching(/\/\.a\.txt\.[0-9a-f]{12}\.tmp false$/), "forgotten false"]);
});

describe("Write replaces only what was seen", () => {
  test("a file that was not read is refused and stays", async () => {
    await space.write("a.txt", "old");
    expect(await write("a.txt", "new")).toMatchObject({
      isError: true,
      text: expect.stringContaining("not read"),
    });
    expect(await bytes("a.txt")).toBe("old");
    await read("a.txt");
    expect((await write("a.txt", "new")).isError).toBe(false);
    expect(await bytes("a.txt")).toBe("new");
  });

  test("having been read by another agent does not count", async () => {
    await space.write("a.txt", "old");
    await read("a.txt", {}, "other");
    expect((await write("a.txt", "new")).isError).toBe(true);
  });

  test("a file changed by another program is refused, one only touched is not", async () => {
    await space.write("a.txt", "old");
    await read("a.txt");
    await space.write("a.txt", "old");
    expect((await write("a.txt", "mine")).isError).toBe(false);
    await space.write("a.txt", "theirs");
    expect(await write("a.txt", "mine again")).toMatchObject({
      isError: true,
      text: expect.stringContaining("changed on disk"),
    });
  });

  test("a file changed by another agent is refused and names it", async () => {
    await space.write("a.txt", "old");
    await read("a.txt");
    await read("a.txt", {}, "painter");
    await write("a.txt", "theirs", "painter");
    expect(await write("a.txt", "mine")).toMatchObject({
      isError: true,
      text: expect.stringContaining("changed by the agent painter"),
    });
    expect(await bytes("a.txt")).toBe("theirs");
  });

  test("a file of which only a part was read is refused until the rest was", async () => {
    await space.write("a.txt", "1\n2\n3\n4\n");
    await read("a.txt", { limit: 2 });
    expect(await write("a.txt", "x")).toMatchObject({
      isError: true,
      text: expect.stringContaining("Only a part"),
    });
    await read("a.txt", { offset: 3 });
    expect((await write("a.txt", "x")).isError).toBe(false);
  });

  test("a file that was removed after reading is made again", async () => {
    const path = await space.write("a.txt", "old");
    await read("a.txt");
    await rm(path);
    expect((await write("a.txt", "new")).text).toContain("Made");
  });

  test("a huge file is neither loaded nor replaced unseen", async () => {
    await truncate(await space.write("huge", "text\n".repeat(5000)), 50 * 1024 * 1024);
    expect((await write("huge", "x")).isError).toBe(true);
    await read("huge", { limit: 1 });
    expect((await write("huge", "x")).text).toContain("Only a part");
  });
});

describe("Write keeps what belongs to a file", () => {
  test("its mode", async () => {
    await chmod(await space.write("run.sh", "a"), 0o751);
    await read("run.sh");
    await write("run.sh", "b");
    expect((await stat(space.path("run.sh"))).mode & 0o7777).toBe(0o751);
  });

  test("a link stays a link and its target is written", async () => {
    await space.write("../outside/real.txt", "old");
    await symlink("../outside/real.txt", space.path("link.txt"));
    await read("link.txt");
    expect((await write("link.txt", "new")).isError).toBe(false);
    expect((await lstat(space.path("link.txt"))).isSymbolicLink()).toBe(true);
    expect(await bytes("../outside/real.txt")).toBe("new");
  });

  test("a dangling link gets its target, and a linked folder is gone through", async () => {
    await mkdir(space.path("real"));
    await symlink("real/new.txt", space.path("dangling"));
    await symlink("real", space.path("folder"));
    await write("dangling", "a");
    await write("folder/b.txt", "b");
    expect(await readdir(space.path("real"))).toEqual(["b.txt", "new.txt"]);
    expect((await lstat(space.path("dangling"))).isSymbolicLink()).toBe(true);
  });

  test("other names of the same file keep the old content", async () => {
    await space.write("a.txt", "old");
    await link(space.path("a.txt"), space.path("b.txt"));
    await read("a.txt");
    await write("a.txt", "new");
    expect([await bytes("a.txt"), await bytes("b.txt")]).toEqual(["new", "old"]);
  });
});

describe("Write refuses", () => {
  test("folders, places of the system and paths through files", async () => {
    await mkdir(space.path("folder"));
    await writeFile(space.path("file"), "");
    for (const path of ["folder", "/proc/x", "/dev/null", "file/below"]) {
      expect(await write(path, "x")).toMatchObject({ isError: true });
    }
    expect(await readdir(space.project)).toEqual(["file", "folder"]);
  });

  test.runIf(process.getuid?.() !== 0)("read-only files and folders", async () => {
    await chmod(await space.write("fixed.txt", "old"), 0o444);
    await read("fixed.txt");
    expect(await write("fixed.txt", "new")).toMatchObject({ isError: true });
    expect(await bytes("fixed.txt")).toBe("old");
  });

  test("when the run was stopped", async () => {
    const context = space.context("main", { signal: AbortSignal.abort(new Error("stopped")) });
    await expect(space.call(tool, { file_path: "a.txt", content: "x" }, context)).rejects.toThrow("stopped");
    expect(await readdir(space.project)).toEqual([]);
  });
});

test("large contents are not kept a second time in the transcript", async () => {
  const { outcome } = await write("big.txt", "x".repeat(50_000));
  expect(outcome.data).not.toHaveProperty("content");
});

import { writeFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { updateFile } from "./update-file.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "write-shared-file-"));
  file = join(root, "deep/state.txt");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const write = (text: string) => ({ type: "write", text }) as const;

describe("updating a file", () => {
  it("makes the file and its directory, and shows the change that there was none", async () => {
    expect(await updateFile(file, (text) => write(`was ${text}`))).toEqual({ type: "written" });
    expect(await readFile(file, "utf8")).toBe("was undefined");
  });

  it("counts every one of many changes made at the same time", async () => {
    await Promise.all(
      Array.from({ length: 20 }, () =>
        updateFile(file, (text) => write(String(Number(text ?? 0) + 1)), { timeoutMs: 60_000 }),
      ),
    );
    expect(await readFile(file, "utf8")).toBe("20");
    expect(await readdir(join(root, "deep"))).toEqual(["state.txt"]);
  });

  it("notices a writer that does not take the lock, and makes its change again on the new text", async () => {
    await updateFile(file, () => write("a"));
    let calls = 0;
    await updateFile(file, (text) => {
      calls += 1;
      if (calls === 1) writeFileSync(file, "b");
      return write(`${text}c`);
    });
    expect(await readFile(file, "utf8")).toBe("bc");
  });

  it("gives up after some attempts against a writer that never rests, leaving its text", async () => {
    await updateFile(file, () => write("a"));
    let calls = 0;
    const update = await updateFile(file, () => {
      calls += 1;
      writeFileSync(file, `other ${calls}`);
      return write("mine");
    });
    expect(update).toMatchObject({ type: "refused", why: expect.stringContaining("another program") });
    expect(await readFile(file, "utf8")).toBe(`other ${calls}`);
  });

  it("frees the lock when the change fails", async () => {
    await updateFile(file, () => write("a"));
    await expect(
      updateFile(file, () => {
        throw new Error("broken change");
      }),
    ).rejects.toThrow("broken change");
    expect(await readdir(join(root, "deep"))).toEqual(["state.txt"]);
  });
});

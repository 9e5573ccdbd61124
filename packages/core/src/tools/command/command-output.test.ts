import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCommandOutput } from "./command-output.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "command-output-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const file = () => join(directory, "made", "out.txt");

test("short output needs no file", async () => {
  const output = createCommandOutput({ limit: 100, file: file() });
  output.take(Buffer.from("short\nunfinished"));
  expect(output.view()).toEqual({ text: "short\nunfinished", length: 16 });
  output.end();
  expect(output.view()).toEqual({ text: "short\nunfinished", length: 16 });
  expect(await readdir(directory)).toEqual([]);
});

test("a character that is cut between two chunks is whole again", () => {
  const output = createCommandOutput({ limit: 100, file: file() });
  const bytes = Buffer.from("grüße 🎉\n");
  for (const byte of bytes) output.take(Buffer.from([byte]));
  output.end();
  expect(output.view().text).toBe("grüße 🎉\n");
});

test("long output keeps its beginning and end in view and all of it in the file", async () => {
  const output = createCommandOutput({ limit: 100, file: file() });
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at}\n`);
  for (const line of lines) output.take(Buffer.from(line));
  output.end();
  const { text, length } = output.view();
  expect(length).toBe(lines.join("").length);
  expect(text).toMatch(/^line 0\nline 1\n[\s\S]*690 characters left out; all of it is in [\s\S]*line 99\n$/);
  expect(await readFile(file(), "utf8")).toBe(lines.join(""));
});

test("the file is bounded, and the end stays in view", async () => {
  const output = createCommandOutput({ limit: 100, file: file(), fileLimit: 500 });
  for (let at = 0; at < 100; at += 1) output.take(Buffer.from(`${"x".repeat(49)}\n`));
  output.take(Buffer.from("the end\n"));
  output.end();
  expect(output.view().text).toMatch(/the first 500 bytes are in [\s\S]*the end\n$/);
  expect((await readFile(file())).length).toBeLessThanOrEqual(550);
});

test("a file from the start is there before anything is written", async () => {
  const output = createCommandOutput({ limit: 100, file: file(), fileFromStart: true });
  expect(await readFile(file(), "utf8")).toBe("");
  expect(output.view()).toEqual({ text: "", length: 0, file: file() });
  output.end();
});

test("a file that another has made is not touched", async () => {
  const first = createCommandOutput({ limit: 10, file: file(), fileFromStart: true });
  first.end();
  const second = createCommandOutput({ limit: 10, file: file() });
  second.take(Buffer.from("more than ten characters\n"));
  second.end();
  expect(second.view().text).toContain("could not be kept");
  expect(await readFile(file(), "utf8")).toBe("");
});

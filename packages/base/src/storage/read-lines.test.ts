import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseLines, readLines } from "./read-lines.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "lines-"));
  file = join(root, "a.jsonl");
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe("[TRN-2] what is whole in a file of lines is read, whatever is around it", () => {
  it.each([
    ["whole lines", '{"a":1}\n{"a":2}\n', [{ a: 1 }, { a: 2 }], 0, false],
    ["an empty file", "", [], 0, false],
    ["blank lines", '\n  \n{"a":1}\n\n', [{ a: 1 }], 0, false],
    ["Windows line ends", '{"a":1}\r\n', [{ a: 1 }], 0, false],
    ["a torn last line", '{"a":1}\n{"a":', [{ a: 1 }], 0, true],
    ["a whole last line without its end", '{"a":1}\n{"a":2}', [{ a: 1 }, { a: 2 }], 0, false],
    ["a broken line in the middle", '{"a":1}\n{"a":\n{"a":2}\n', [{ a: 1 }, { a: 2 }], 1, false],
    ["lines that are no objects", '1\nnull\n[]\n"x"\n{"a":1}\n', [{ a: 1 }], 4, false],
    ["zeros left by a power cut", '\0\0\0{"a":1}\n\0\0\n', [{ a: 1 }], 0, false],
  ])("%s", (_, text, values, broken, torn) => {
    expect(parseLines(Buffer.from(text))).toEqual({ values, broken, torn });
  });

  it("a line cut in the middle of a character is torn, not fatal", () => {
    const bytes = Buffer.from('{"a":"é"}');
    expect(parseLines(bytes.subarray(0, 7))).toEqual({ values: [], broken: 0, torn: true });
  });

  it("any bytes at all can be read", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(parseLines(Buffer.from(bytes)).values.length).toBeLessThanOrEqual(bytes.length);
      }),
    );
  });
});

it("a limit leaves out the beginning and never a part of a line", async () => {
  const lines = ['{"a":1}', '{"a":2}', '{"a":3}'];
  await writeFile(file, `${lines.join("\n")}\n`);
  for (const [maxBytes, values, skippedBytes] of [
    [7, [], 24],
    [8, [{ a: 3 }], 16],
    [15, [{ a: 3 }], 16],
    [16, [{ a: 2 }, { a: 3 }], 8],
    [24, [{ a: 1 }, { a: 2 }, { a: 3 }], 0],
    [1000, [{ a: 1 }, { a: 2 }, { a: 3 }], 0],
  ] as const) {
    expect(await readLines(file, { maxBytes })).toMatchObject({ values, skippedBytes, length: 24 });
  }
});

it("a file that is not there is an error", async () => {
  await expect(readLines(file)).rejects.toMatchObject({ code: "file-missing" });
});

import { readFile, stat, writeFile } from "node:fs/promises";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boundOutput } from "./bound-output.ts";
import { limitText, takeEnd, takeStart } from "./limit-text.ts";

const texts = fc.string({ unit: fc.constantFrom("a", "é", "😀", "\n", "👩‍💻") });

describe("limiting a text", () => {
  test("a text that fits is left alone", () => {
    expect(limitText("short", 5)).toEqual({ text: "short", omitted: 0 });
  });

  test("of a longer one the beginning and the end stay, and what is missing is counted", () => {
    const { text, omitted } = limitText(`${"a".repeat(50)}${"b".repeat(50)}`, 10);
    expect(text).toBe("aaaaaa\n\n[… 90 characters left out …]\n\nbbbb");
    expect(omitted).toBe(90);
  });

  test("no limit splits a surrogate pair, loses count or keeps too much", () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 0, max: 40 }), (text, limit) => {
        const limited = limitText(text, limit);
        expect(limited.text.isWellFormed()).toBe(true);
        if (limited.omitted === 0) {
          expect(limited.text).toBe(text);
          return;
        }
        const [head = "", tail = ""] = limited.text.split(/\n\n\[… \d+ characters left out …\]\n\n/);
        expect(head.length + tail.length).toBeLessThanOrEqual(limit);
        expect(head.length + tail.length + limited.omitted).toBe(text.length);
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      }),
    );
  });

  test("beginnings and ends are as long as asked, or one shorter at a pair", () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: -1, max: 40 }), (text, length) => {
        for (const part of [takeStart(text, length), takeEnd(text, length)]) {
          const wanted = Math.min(text.length, Math.max(0, length));
          expect(part.isWellFormed()).toBe(true);
          expect(part.length === wanted || part.length === wanted - 1).toBe(true);
        }
      }),
    );
  });
});

describe("keeping what does not fit", () => {
  test("the whole goes to a file that only its owner reads, and the text names it", async () => {
    await using space = await createWorkspace();
    const context = space.context("main", { callId: "toolu/../01" });
    const { text, file } = await boundOutput("x".repeat(100), 20, context);
    expect(file).toBe(`${context.outputDirectory}/toolu____01.txt`);
    expect(text).toContain(`all of it is in ${file}`);
    expect(await readFile(file ?? "", "utf8")).toBe("x".repeat(100));
    expect((await stat(file ?? "")).mode & 0o777).toBe(0o600);
  });

  test("a text that fits makes no file", async () => {
    await using space = await createWorkspace();
    expect(await boundOutput("short", 20, space.context())).toEqual({ text: "short" });
  });

  test("where no file can be made the text is still bounded and says so", async () => {
    await using space = await createWorkspace();
    await writeFile(`${space.root}/output`, "in the way");
    const { text, file } = await boundOutput("x".repeat(100), 20, space.context());
    expect(file).toBeUndefined();
    expect(text).toContain("could not be kept");
  });
});

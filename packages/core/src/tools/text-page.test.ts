import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { loadTextPage } from "./command/command-output.ts";
import { pageOf, type TextPage } from "./text-page.ts";

/** All pages, one after the other, as a reader gets them who follows `next`. */
async function readAll(page: (offset: number) => TextPage | Promise<TextPage>): Promise<string> {
  let text = "";
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const read: TextPage = await page(offset);
    text += read.text;
    offset = read.next;
  }
  return text;
}

const texts = fc.string({ unit: anyCharacter, maxLength: 200 }).map((text) => text.toWellFormed());

test("pages of a text put together are the text, and no character is torn [TSK-1]", async () => {
  await fc.assert(
    fc.asyncProperty(texts, fc.integer({ min: 2, max: 40 }), async (text, length) => {
      const pages: string[] = [];
      const whole = await readAll((offset) => {
        const page = pageOf(text, offset, length);
        pages.push(page.text);
        return page;
      });
      expect(whole).toBe(text);
      expect(pages.every((page) => page.isWellFormed())).toBe(true);
    }),
  );
});

test("the same holds for a file [TSK-1]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "retinue-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "out");
  const text = `${"line of output ü😀\n".repeat(9_000)}end`;
  writeFileSync(file, text);
  expect(await readAll((offset) => loadTextPage(file, offset))).toBe(text);
  expect(await loadTextPage(file, text.length + 5)).toEqual({ text: "", offset: text.length });
});

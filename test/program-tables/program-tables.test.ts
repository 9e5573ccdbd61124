import { describe, expect, it } from "vitest";
import {
  checkEveryday,
  checkFiles,
  checkHistory,
  checkLanguages,
  checkOptions,
  checkShell,
} from "./check-tables.ts";

/** A sample; `npm run tables` runs all of it. */
describe("[PRM-9] what the tables say about programs, with the real programs", () => {
  it("options take as many words as the tables say, and where they need no question nothing changes", async () => {
    const { diagnostics } = await checkOptions(122);
    expect(diagnostics).toEqual([]);
  }, 60_000);

  it("files that programs open or change are among those that the tables name", async () => {
    const { diagnostics } = await checkFiles(142);
    expect(diagnostics).toEqual([]);
  }, 60_000);

  it("git shows contents of tracked files only where the tables say so", async () => {
    const { diagnostics } = await checkHistory(62);
    expect(diagnostics).toEqual([]);
  }, 60_000);

  it("words of the languages of sed, awk, jq and find that need no question only print", async () => {
    const { diagnostics } = await checkLanguages(58);
    expect(diagnostics).toEqual([]);
  }, 60_000);

  it("forms of builtins leave the shell as it was, and wrappers start what was taken out of them", async () => {
    const { diagnostics } = await checkShell(22);
    expect(diagnostics).toEqual([]);
  }, 60_000);

  it("commands of every day need no question", async () => {
    const { diagnostics } = await checkEveryday();
    expect(diagnostics).toEqual([]);
  });
});

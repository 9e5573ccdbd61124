import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { comparePrograms } from "./compare.ts";
import { type Laboratory, openLaboratory } from "./run-program.ts";
import { generateWords } from "./shell-program.ts";

describe("[PRM-9] what was judged is what real bash runs", () => {
  let laboratory: Laboratory;
  beforeAll(async () => {
    laboratory = await openLaboratory();
  });
  afterAll(() => laboratory.close());

  it("in generated programs: the same commands with the same arguments", async () => {
    const { started, opaque, programs, misses } = await comparePrograms(laboratory, {
      first: 2_500,
      count: 80,
    });
    expect(misses).toEqual([]);
    expect(started).toBeGreaterThan(60);
    expect(opaque).toBeLessThan(programs * 0.7);
  });

  it("in generated words", async () => {
    const { started, opaque, programs, misses } = await comparePrograms(laboratory, {
      first: 1,
      count: 80,
      generate: generateWords,
    });
    expect(misses).toEqual([]);
    expect(started).toBeGreaterThan(30);
    expect(opaque).toBeLessThan(programs * 0.7);
  });
});

import { describe, expect, it } from "vitest";
import { comparePrograms } from "./compare.ts";
import { openLaboratory } from "./run-program.ts";

describe("[PRM-9] the analysis and real bash", () => {
  it("agree on every command that bash starts in generated programs", async () => {
    const laboratory = await openLaboratory();
    try {
      const { started, opaque, programs, misses } = await comparePrograms(laboratory, 2_500, 120);
      expect(misses).toEqual([]);
      expect(started).toBeGreaterThan(100);
      expect(opaque).toBeLessThan(programs * 0.7);
    } finally {
      await laboratory.close();
    }
  });
});

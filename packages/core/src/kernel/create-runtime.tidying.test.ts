import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { expect, it } from "vitest";
import { createBackgroundCleanup } from "./create-runtime.ts";

const dayMs = 24 * 60 * 60 * 1000;

it.each([
  [undefined, 29, true],
  [undefined, 31, false],
  [3, 2, true],
  [3, 4, false],
])("with the period %s, a transcript of %i days ago stays: %s [TRN-6]", async (cleanupPeriodDays, age, stays) => {
  await using sample = await createSampleRuntime(["One."]);
  await sample.runtime.run("First.").result;
  await sample.workspace.write("../home/.claude/settings.json", JSON.stringify({ cleanupPeriodDays }));
  const discovered = await sample.runtime.agents();
  const [name = ""] = readdirSync(discovered.paths.transcripts);
  const tidying = createBackgroundCleanup(new AbortController().signal, () => Date.now() + age * dayMs);
  tidying.begin({ discovered, environment: {}, trusted: true });
  await tidying.end();
  expect(existsSync(join(discovered.paths.transcripts, name))).toBe(stays);
});

it("removes nothing once the runtime ends [SDK-3]", async () => {
  await using sample = await createSampleRuntime(["One."]);
  await sample.runtime.run("First.").result;
  const discovered = await sample.runtime.agents();
  const tidying = createBackgroundCleanup(AbortSignal.abort(), () => Date.now() + 99 * dayMs);
  tidying.begin({ discovered, environment: {}, trusted: true });
  await tidying.end();
  expect(readdirSync(discovered.paths.transcripts)).toHaveLength(2);
});

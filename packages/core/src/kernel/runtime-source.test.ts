import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { RuntimeSetup } from "./options/runtime-options.ts";
import { createRuntimeSource } from "./runtime-source.ts";

async function gather(options: RuntimeSetup) {
  const home = mkdtempSync(join(tmpdir(), "retinue-world-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  await using source = createRuntimeSource({ cwd: home, home, environment: {}, ...options });
  return source.gather();
}

describe("what is about to happen is on the disk first [TRN-2]", () => {
  test.each<[string, RuntimeSetup, string]>([
    ["unless somebody says otherwise", {}, "sync"],
    ["but where settings leave it to the system", { settings: '{"durability":"os"}' }, "os"],
    [
      "as the program says, whatever settings say",
      { settings: '{"durability":"os"}', durability: "sync" },
      "sync",
    ],
  ])("%s", async (_, options, durability) => {
    expect((await gather(options)).durability).toBe(durability);
  });
});

test("a home that is relative is refused, because what is below it may come from a stranger [PRM-11]", () => {
  expect(() => createRuntimeSource({ home: "." })).toThrow(expect.objectContaining({ code: "invalid-home" }));
});

test("commands and hooks are given the home that is used here [PRM-11]", async () => {
  const { environment, discovered } = await gather({ environment: { HOME: "" } });
  expect(environment["HOME"]).toBe(discovered.paths.home);
});

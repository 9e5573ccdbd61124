import { becomes } from "@retinue/testing/becomes.ts";
import { describe, expect, test } from "vitest";
import { createWorkerHealth } from "./worker-health.ts";

describe("the health of a worker [CLU-7]", () => {
  test("what runs on a machine that is found sick is handed over, and what begins when it is well is not", async () => {
    let found: string | undefined = "The disk is full.";
    const said: string[] = [];
    using health = createWorkerHealth({ probe: async () => found, report: (text) => said.push(text) });
    const before = health.sickness;
    expect(before.aborted).toBe(false);
    expect(await health.examine(new Error("ENOSPC"), "a")).toBe("host");
    expect(before.aborted).toBe(true);
    expect(health.ailment).toBe("The disk is full.");
    found = undefined;
    await becomes(() => health.ailment === undefined);
    expect(health.sickness.aborted).toBe(false);
    expect(said).toHaveLength(2);
  });

  test("agents that fail one after another for unknown reasons make the worker pause, and the others stay", async () => {
    using health = createWorkerHealth({ probe: async () => undefined, report: () => undefined });
    for (const agent of ["a", "b", "c"])
      expect(await health.examine(new Error("No connection."), agent)).toBe("unknown");
    expect(health.ailment).toContain("3 agents failed here one after another");
    expect(health.sickness.aborted).toBe(false);
  });
});

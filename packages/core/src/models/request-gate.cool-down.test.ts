import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { describe, expect, test } from "vitest";
import { createCoolDowns } from "./request-gate.ts";

const { signal } = new AbortController();

/** Time passes only by waiting; `on` is called with each moment that is reached. */
function steppingClock(on: (now: number) => void = () => undefined): WaitClock {
  let now = 0;
  return {
    now: () => now,
    async sleep(milliseconds, waiting) {
      waiting.throwIfAborted();
      now += milliseconds;
      on(now);
    },
  };
}

describe("createCoolDowns [MDL-6]", () => {
  test("all callers of one model wait until the time the provider asked for", async () => {
    const clock = steppingClock();
    const coolDowns = createCoolDowns(clock, () => 0);
    coolDowns.of("anthropic", "a").refused(5000);
    await coolDowns.of("anthropic", "a").wait(signal);
    expect(clock.now()).toBe(5000);
  });

  test("another model, and the same model of another provider, are not held back", async () => {
    const clock = steppingClock();
    const coolDowns = createCoolDowns(clock, () => 0);
    coolDowns.of("anthropic", "a").refused(5000);
    await coolDowns.of("anthropic", "b").wait(signal);
    await coolDowns.of("bedrock", "a").wait(signal);
    expect(clock.now()).toBe(0);
  });

  test("requests that waited together set out at different times, none of them early", async () => {
    const ends: number[] = [];
    for (const chance of [0, 0.3, 0.99]) {
      const clock = steppingClock();
      const coolDown = createCoolDowns(clock, () => chance).of("p", "m");
      coolDown.refused(4000);
      await coolDown.wait(signal);
      ends.push(clock.now());
    }
    expect(ends).toEqual([4000, 4300, 4990]);
  });

  test("the longest pause counts", async () => {
    const clock = steppingClock();
    const coolDown = createCoolDowns(clock, () => 0).of("p", "m");
    coolDown.refused(3000);
    coolDown.refused(500);
    await coolDown.wait(signal);
    expect(clock.now()).toBe(3000);
  });

  test("a refusal during the pause makes it longer for requests that wait already", async () => {
    const clock = steppingClock((now) => {
      if (now === 3000) coolDown.refused(4000);
    });
    const coolDown = createCoolDowns(clock, () => 0).of("p", "m");
    coolDown.refused(3000);
    await coolDown.wait(signal);
    expect(clock.now()).toBe(7000);
  });

  test("waiting ends with its signal", async () => {
    const coolDown = createCoolDowns(steppingClock(), () => 0).of("p", "m");
    coolDown.refused(1000);
    const reason = new Error("stop");
    await expect(coolDown.wait(AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

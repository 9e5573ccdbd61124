import { createManualClock } from "@retinue/testing/manual-clock.ts";
import { describe, expect, test } from "vitest";
import { createStopwatch } from "./watch-run.ts";

const never = new AbortController().signal;

describe("a stopwatch", () => {
  test("runs between start and stop, and is paused while it is held", async () => {
    const clock = createManualClock();
    const watch = createStopwatch(clock);
    await clock.advance(10);
    expect(watch.elapsed()).toBe(0);
    watch.start();
    await clock.advance(10);
    const answer = Promise.withResolvers<string>();
    const asked = watch.hold(() => answer.promise);
    await clock.advance(1000);
    expect(watch.elapsed()).toBe(10);
    answer.resolve("yes");
    expect(await asked).toBe("yes");
    await clock.advance(5);
    watch.stop();
    await clock.advance(100);
    expect(watch.elapsed()).toBe(15);
  });

  test("continues after a wait that fails", async () => {
    const clock = createManualClock();
    const watch = createStopwatch(clock);
    watch.start();
    await expect(watch.hold(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await clock.advance(7);
    expect(watch.elapsed()).toBe(7);
  });

  test("of several runs whenever one of them does", async () => {
    const clock = createManualClock();
    const tree = createStopwatch(clock);
    const [first, second] = [createStopwatch(clock, tree), createStopwatch(clock, tree)];
    first.start();
    await clock.advance(10);
    second.start();
    await clock.advance(10);
    first.stop();
    await clock.advance(10);
    second.stop();
    await clock.advance(10);
    expect(tree.elapsed()).toBe(30);
  });

  test("shows when it has run long enough, not counting the time it was held", async () => {
    const clock = createManualClock();
    const watch = createStopwatch(clock);
    let isReached = false;
    void watch
      .reach(() => 100, never)
      .then(() => {
        isReached = true;
      });
    await clock.advance(500);
    expect(isReached).toBe(false);
    watch.start();
    await clock.advance(60);
    const answer = Promise.withResolvers<void>();
    const asked = watch.hold(() => answer.promise);
    await clock.advance(3_600_000);
    expect(isReached).toBe(false);
    answer.resolve();
    await asked;
    await clock.advance(39);
    expect(isReached).toBe(false);
    await clock.advance(1);
    expect(isReached).toBe(true);
    expect(clock.sleeping()).toBe(0);
  });

  test("respects a deadline that moves, and leaves nothing behind when it is not waited for any more", async () => {
    const clock = createManualClock();
    const watch = createStopwatch(clock);
    watch.start();
    let deadline = Number.POSITIVE_INFINITY;
    let isReached = false;
    void watch
      .reach(() => deadline, never)
      .then(() => {
        isReached = true;
      });
    await clock.advance(3_600_000);
    deadline = 0;
    await clock.advance(60_000);
    expect(isReached).toBe(true);
    const stop = new AbortController();
    const waiting = watch.reach(() => Number.POSITIVE_INFINITY, stop.signal);
    stop.abort(new Error("over"));
    await expect(waiting).rejects.toThrow("over");
    expect(clock.sleeping()).toBe(0);
  });
});

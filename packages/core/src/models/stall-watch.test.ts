import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createStallWatch } from "./stall-watch.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const limits = { firstTokenMs: 1000, betweenTokensMs: 300 };

describe("createStallWatch [MDL-6]", () => {
  test("silence before the first token passes the longer limit only", () => {
    const onStall = vi.fn();
    using watch = createStallWatch(limits, onStall);
    watch.wait();
    vi.advanceTimersByTime(999);
    expect(onStall).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(onStall).toHaveBeenCalledOnce();
    expect(watch.stalled).toContain("did not start an answer");
  });

  test("silence after it passes the shorter one", () => {
    const onStall = vi.fn();
    using watch = createStallWatch(limits, onStall);
    watch.wait();
    watch.rest();
    watch.answerStarted();
    watch.wait();
    vi.advanceTimersByTime(299);
    expect(onStall).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(watch.stalled).toContain("fell silent");
  });

  test("signs of life put the shorter limit off, but not for longer than the longer one", () => {
    using watch = createStallWatch(limits, () => undefined);
    watch.answerStarted();
    for (let passed = 0; passed < 900; passed += 100) {
      watch.wait();
      vi.advanceTimersByTime(100);
      watch.rest();
    }
    expect(watch.stalled).toBeUndefined();
    watch.wait();
    vi.advanceTimersByTime(100);
    expect(watch.stalled).toContain("sent nothing of its answer");
  });

  test("the reader's own time counts for nothing, however long", () => {
    using watch = createStallWatch(limits, () => undefined);
    watch.wait();
    watch.rest();
    watch.answerStarted();
    vi.advanceTimersByTime(60_000);
    watch.wait();
    vi.advanceTimersByTime(250);
    expect(watch.stalled).toBeUndefined();
    vi.advanceTimersByTime(50);
    expect(watch.stalled).toContain("fell silent");
  });

  test("no timer is left behind", () => {
    {
      using watch = createStallWatch(limits, () => undefined);
      watch.answerStarted();
    }
    expect(vi.getTimerCount()).toBe(0);
  });
});

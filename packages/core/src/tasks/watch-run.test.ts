import { createManualClock } from "@retinue/testing/manual-clock.ts";
import { describe, expect, test } from "vitest";
import type { RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { createAsyncQueue } from "../loop/call-tools.ts";
import { endingOfCause } from "../loop/loop-ports.ts";
import { createStopwatch, type SilenceLimit, watchRun } from "./watch-run.ts";

const sign: RunEvent = { type: "turn-started", turn: 1 };
const never = new AbortController().signal;

function ended(signal: AbortSignal): RunEvent {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 };
  return {
    type: "run-ended",
    ending: { ...endingOfCause(signal.reason, signal.aborted), text: "", denials: [], totals },
  };
}

/** A run that does what it is asked, and ends with its signal unless it is deaf. */
function start(
  clocks: { readonly timeMs?: number; readonly silence?: SilenceLimit },
  more: { isDeaf?: boolean; treeMs?: number } = {},
) {
  const clock = createManualClock();
  const tree = createStopwatch(clock);
  const stopwatch = createStopwatch(clock, tree);
  const queue = createAsyncQueue<RunEvent>();
  const received: RunEvent[] = [];
  let isClosed = false;
  async function* run(signal: AbortSignal): AsyncGenerator<RunEvent> {
    signal.addEventListener("abort", () => {
      if (more.isDeaf === true) return;
      queue.push(ended(signal));
      queue.end();
    });
    try {
      yield* queue;
    } finally {
      isClosed = true;
    }
  }
  const watch = {
    clock,
    stopwatch,
    timeMs: clocks.timeMs,
    silence: () => clocks.silence,
    tree: more.treeMs === undefined ? undefined : { stopwatch: tree, timeMs: more.treeMs },
  };
  const done = (async () => {
    for await (const event of watchRun(run, watch, never)) received.push(event);
  })();
  done.catch(() => undefined);
  return { clock, stopwatch, tree, queue, received, done, isClosed: () => isClosed };
}

const types = (events: readonly RunEvent[]): string[] => events.map(({ type }) => type);
const silence = { reportMs: 300_000, stopMs: 600_000 };

describe("[LIM-5] a run that falls silent", () => {
  test("is reported, then stopped at twice the time, as stalled", async () => {
    const { clock, received, done } = start({ silence });
    await clock.advance(299_999);
    expect(received).toEqual([]);
    await clock.advance(1);
    expect(received).toEqual([{ type: "run-stalled", silentMs: 300_000, stops: false }]);
    await clock.advance(300_000);
    await done;
    expect(types(received)).toEqual(["run-stalled", "run-stalled", "run-ended"]);
    expect(received[1]).toMatchObject({ stops: true });
    expect(received[2]).toMatchObject({ ending: { status: "stopped", reason: "stalled" } });
    expect(clock.sleeping()).toBe(0);
  });

  test("begins anew with every sign of life", async () => {
    const { clock, received, queue, done } = start({ silence });
    for (let sent = 0; sent < 5; sent += 1) {
      await clock.advance(290_000);
      queue.push(sign);
    }
    await clock.advance(300_000);
    expect(types(received)).toEqual([...Array.from({ length: 5 }, () => "turn-started"), "run-stalled"]);
    queue.push(sign);
    await clock.advance(599_999);
    expect(received.filter((event) => event.type === "run-stalled" && event.stops)).toEqual([]);
    queue.end();
    await done;
  });

  test("is not silent while a person is asked", async () => {
    const { clock, received, stopwatch, queue, done } = start({ silence, timeMs: 900_000 });
    const answer = Promise.withResolvers<void>();
    const asked = stopwatch.hold(() => answer.promise);
    await clock.advance(24 * 3_600_000);
    expect(received).toEqual([]);
    answer.resolve();
    await asked;
    queue.push(sign);
    queue.end();
    await done;
    expect(types(received)).toEqual(["turn-started"]);
  });

  test("and breaks while that is being reported, is received by its reader alone", async () => {
    const clock = createManualClock();
    const stopListening: unknown[] = [];
    const note = (reason: unknown): void => void stopListening.push(reason);
    process.on("unhandledRejection", note);
    async function* run(): AsyncGenerator<RunEvent> {
      yield sign;
      throw new Error("broken");
    }
    const watch = { clock, stopwatch: createStopwatch(clock), silence: () => silence };
    const received: string[] = [];
    const reading = (async () => {
      for await (const event of watchRun(run, watch, never)) {
        received.push(event.type);
        // The reader is slow, so the silence is reported while the next event is on its way.
        if (event.type === "turn-started") await clock.advance(300_000);
        else await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    await expect(reading).rejects.toThrow("broken");
    process.off("unhandledRejection", note);
    expect({ received, stopListening }).toEqual({
      received: ["turn-started", "run-stalled"],
      stopListening: [],
    });
  });

  test("is given up when it does not respect its signal", async () => {
    const { clock, done } = start({ silence }, { isDeaf: true });
    await clock.advance(700_000);
    await expect(done).rejects.toMatchObject({ code: "stalled" });
    expect(clock.sleeping()).toBe(0);
  });
});

describe("[LIM-3] a run whose time is up", () => {
  test.each([
    ["its own", { timeMs: 5000 }, {}, "The time limit of 5 s of the agent was reached."],
    ["the tree's", {}, { treeMs: 5000 }, "The time limit of 5 s of the whole tree was reached."],
  ])("%s ends with what it has", async (_whose, clocks, more, error) => {
    const { clock, received, queue, done } = start(clocks, more);
    queue.push(sign);
    await clock.advance(4999);
    expect(types(received)).toEqual(["turn-started"]);
    await clock.advance(1);
    await done;
    expect(received.at(-1)).toMatchObject({ ending: { status: "partial", reason: "max_time", error } });
    expect(clock.sleeping()).toBe(0);
  });

  test("is not hurried by the time of an earlier run on the same clock", async () => {
    const clock = createManualClock();
    const stopwatch = createStopwatch(clock);
    stopwatch.start();
    await clock.advance(10_000);
    stopwatch.stop();
    const received: RunEvent[] = [];
    const gate = Promise.withResolvers<void>();
    async function* run(): AsyncGenerator<RunEvent> {
      await gate.promise;
      yield sign;
    }
    const watch = { clock, stopwatch, timeMs: 5000 };
    const done = (async () => {
      for await (const event of watchRun(run, watch, never)) received.push(event);
    })();
    await clock.advance(4000);
    gate.resolve();
    await done;
    expect(types(received)).toEqual(["turn-started"]);
  });
});

describe("the one that leaves a watched run", () => {
  test("has it closed, and no clock continues", async () => {
    const { clock, queue, stopwatch, done, isClosed } = start({ silence, timeMs: 5000 });
    queue.push(sign);
    queue.end();
    await done;
    expect(isClosed()).toBe(true);
    expect(clock.sleeping()).toBe(0);
    const before = stopwatch.elapsed();
    await clock.advance(100);
    expect(stopwatch.elapsed()).toBe(before);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRequestGate, type GatePass, type RequestGate } from "./request-gate.ts";

const signal = new AbortController().signal;

async function enterAll(gate: RequestGate, count: number): Promise<GatePass[]> {
  return Promise.all(Array.from({ length: count }, () => gate.enter(signal)));
}

/** How many of the asked-for places are given once everything that can run has run. */
async function givenOf(gate: RequestGate, count: number): Promise<{ given: GatePass[] }> {
  const given: GatePass[] = [];
  for (let index = 0; index < count; index += 1) void gate.enter(signal).then((pass) => given.push(pass));
  await new Promise(setImmediate);
  return { given };
}

describe("[MDL-6] how many requests a provider gets at the same time", () => {
  test("as many as are wanted while it refuses none", async () => {
    const gate = createRequestGate();
    expect(await enterAll(gate, 500)).toHaveLength(500);
    expect(gate.limit()).toBe(Number.POSITIVE_INFINITY);
  });

  test("half as many after a burst of refusals, however many of the burst were refused", async () => {
    const gate = createRequestGate();
    for (const pass of await enterAll(gate, 20)) pass.leave("refused");
    expect(gate.limit()).toBe(10);
    const { given } = await givenOf(gate, 20);
    expect(given).toHaveLength(10);
    given[0]?.leave("answered");
    await new Promise(setImmediate);
    expect(given).toHaveLength(11);
  });

  test("who need not wait is inside at once, and passes nobody who waits", async () => {
    const gate = createRequestGate();
    const [first, second] = [gate.tryEnter(), gate.tryEnter()];
    second?.leave("refused");
    first?.leave("failed");
    const inside = gate.tryEnter();
    expect([inside === undefined, gate.tryEnter()]).toEqual([false, undefined]);
    const { given } = await givenOf(gate, 1);
    inside?.leave("failed");
    // The place belongs to the one that waits, who has not taken it up yet.
    expect(gate.tryEnter()).toBeUndefined();
    await new Promise(setImmediate);
    expect(given).toHaveLength(1);
  });

  test("one at least", async () => {
    const gate = createRequestGate();
    for (let round = 0; round < 10; round += 1) (await gate.enter(signal)).leave("refused");
    expect(gate.limit()).toBe(1);
  });

  test("one more after each full round of answers, and all of them when the provider keeps up", async () => {
    const gate = createRequestGate();
    for (const pass of await enterAll(gate, 4)) pass.leave("refused");
    expect(gate.limit()).toBe(2);
    for (const pass of await enterAll(gate, 2)) pass.leave("answered");
    expect(gate.limit()).toBe(3);
    for (let answers = 0; answers < 3000; answers += 1) (await gate.enter(signal)).leave("answered");
    expect(gate.limit()).toBe(Number.POSITIVE_INFINITY);
  });

  test("errors that are no refusals change nothing", async () => {
    const gate = createRequestGate();
    for (const pass of await enterAll(gate, 4)) pass.leave("failed");
    expect(gate.limit()).toBe(Number.POSITIVE_INFINITY);
  });

  test("who is stopped while waiting takes no place, and those behind it get theirs", async () => {
    const gate = createRequestGate();
    for (const pass of await enterAll(gate, 2)) pass.leave("refused");
    const inside = await gate.enter(signal);
    const stop = new AbortController();
    const stopped = gate.enter(stop.signal);
    const behind = gate.enter(signal);
    stop.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    inside.leave("answered");
    (await behind).leave("answered");
  });

  test("any order of arrivals, refusals and stops leaves no place lost and no limit passed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("enter", "answered", "refused", "failed", "stop"), { maxLength: 60 }),
        async (steps) => {
          const gate = createRequestGate();
          const inside: GatePass[] = [];
          const stops: AbortController[] = [];
          for (const step of steps) {
            if (step === "enter") {
              const stop = new AbortController();
              stops.push(stop);
              gate.enter(stop.signal).then(
                (pass) => inside.push(pass),
                () => undefined,
              );
            } else if (step === "stop") stops.shift()?.abort(new Error("stopped"));
            else inside.shift()?.leave(step);
            await Promise.resolve();
          }
          for (let left = 0; left < 200; left += 1) {
            await new Promise(setImmediate);
            const pass = inside.shift();
            if (pass === undefined) break;
            pass.leave("answered");
          }
          (await gate.enter(signal)).leave("answered");
        },
      ),
      { numRuns: 60 },
    );
  });
});

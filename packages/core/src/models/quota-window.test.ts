import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { openQuotaWindow, type QuotaWindow } from "./quota-window.ts";

const hour = 3_600_000;
const { signal } = new AbortController();

/** Two windows on one file, as two processes have them, and a clock that moves when one of them sleeps. */
function openWindows() {
  const folder = mkdtempSync(join(tmpdir(), "quota-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "anthropic-0.json");
  let time = 1_000_000;
  const clock = {
    now: () => time,
    async sleep(milliseconds: number) {
      time += milliseconds;
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
  };
  const open = (): QuotaWindow => openQuotaWindow({ file, clock, now: clock.now });
  const pass = (milliseconds: number): void => {
    time += milliseconds;
  };
  return { file, one: open(), other: open(), pass, now: clock.now };
}

async function entered(window: QuotaWindow) {
  const entry = await window.enter(signal);
  if (entry.type !== "entered") throw new Error(`It is ${entry.type}.`);
  return entry.turn;
}

describe("the quota of a key [LIM-7]", () => {
  test("a refusal closes it for every process, and after the reset one request goes first", async () => {
    const { one, other, pass, now } = openWindows();
    expect(one.standing()).toEqual({ type: "open" });
    await one.refused(hour);
    expect(await other.enter(signal)).toEqual({ type: "closed", until: now() + hour });
    // An answer to a request that was sent before says nothing about it.
    await other.answered({ used: 0.2, resetsInMs: hour });
    expect(other.standing().type).toBe("closed");
    pass(hour);
    const first = await entered(one);
    let isSecondInside = false;
    const second = entered(other).then((turn) => {
      isSecondInside = true;
      return turn;
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(isSecondInside).toBe(false);
    await one.answered(undefined);
    first.leave();
    (await second).leave();
    expect(other.standing()).toEqual({ type: "open" });
  });

  test("near the end only last turns are left, and the next window begins by itself", async () => {
    const { one, other, pass, now } = openWindows();
    await one.answered({ used: 0.91, resetsInMs: hour });
    expect(other.standing()).toEqual({ type: "open" });
    await one.answered({ used: 0.96, resetsInMs: hour });
    expect(other.standing()).toEqual({ type: "closing", until: now() + hour });
    pass(hour);
    expect(other.standing()).toEqual({ type: "open" });
  });

  test("the turn of a process that died is free, and a file that is damaged says nothing", async () => {
    const { file, one, pass } = openWindows();
    await one.refused(10);
    pass(20);
    await entered(one);
    const state = JSON.parse(readFileSync(file, "utf8"));
    expect(state.turn.process).toEqual(thisProcess());
    const dead = { ...thisProcess(), pid: 2 ** 22 + 1 };
    writeFileSync(file, JSON.stringify({ ...state, turn: { ...state.turn, process: dead } }));
    (await entered(one)).leave();
    for (const text of [
      "",
      "{",
      "[]",
      '{"version":2}',
      '{"version":1,"closedUntil":"soon","turn":{"process":1}}',
    ]) {
      writeFileSync(file, text);
      expect(one.standing()).toEqual({ type: "open" });
    }
  });

  test("a provider whose times are in the past is asked less and less often, until it answers", async () => {
    const { one, other, pass, now } = openWindows();
    const pauses: number[] = [];
    for (let refusal = 0; refusal < 8; refusal += 1) {
      const until = await (refusal % 2 === 0 ? one : other).refused(0);
      pauses.push(until - now());
      pass(until - now());
    }
    expect(pauses).toEqual([0, 1_000, 4_000, 16_000, 64_000, 256_000, 300_000, 300_000]);
    await one.answered(undefined);
    expect([await one.refused(5), await other.refused(3)]).toEqual([now() + 5, now() + 5]);
  });

  test("refusals of requests that were sent together count as one", async () => {
    const { one, other, pass, now } = openWindows();
    await Promise.all([one.refused(hour), other.refused(hour), one.refused(hour)]);
    pass(hour);
    await Promise.all([one.refused(0), other.refused(0)]);
    expect(one.standing()).toEqual({ type: "closed", until: now() + 1_000 });
  });

  test.each([
    1e17,
    Number.POSITIVE_INFINITY,
  ])("a time of %d ms closes nothing for ever", async (resetsInMs) => {
    const { file, one, other, now } = openWindows();
    const until = await one.refused(resetsInMs);
    expect(new Date(until).toISOString()).toMatch(/^1970-02-15/);
    writeFileSync(file, JSON.stringify({ version: 1, closedUntil: 1e17, used: 1, resetsAt: 1e17 }));
    expect(other.standing()).toEqual({ type: "open" });
    expect(now()).toBe(1_000_000);
  });
});

test("where its file cannot be written, this process keeps to what it learns itself [LIM-7]", async () => {
  const { file, one, other, pass, now } = openWindows();
  mkdirSync(file);
  expect(await one.refused(hour)).toBe(now() + hour);
  expect(await one.enter(signal)).toEqual({ type: "closed", until: now() + hour });
  expect(other.standing()).toEqual({ type: "open" });
  pass(hour);
  const turn = await entered(one);
  await one.answered(undefined);
  turn.leave();
  expect(one.standing()).toEqual({ type: "open" });
  (await entered(one)).leave();
});

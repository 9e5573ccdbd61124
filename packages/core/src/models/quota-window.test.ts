import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { openQuotaWindow, type QuotaWindow } from "./quota-window.ts";

const hour = 3_600_000;
const { signal } = new AbortController();

/** Two windows on one file, as two processes have them, and a clock that moves when somebody sleeps. */
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
});

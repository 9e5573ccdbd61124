import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identifyProcess } from "@retinue/base/storage/process-identity.ts";
import { expect, onTestFinished, test } from "vitest";
import type { CallNeed } from "./need-estimator.ts";
import { openUnattendedLedger } from "./unattended-ledger.ts";

const clock = {
  now: () => Date.now(),
  sleep: async (_: number, signal: AbortSignal) => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    signal.throwIfAborted();
  },
};
const { signal } = new AbortController();
/** A dollar for each call: a thousand tokens of an answer at a thousand dollars the million. */
const need: CallNeed = {
  model: "m",
  inputTokens: 0,
  maxOutput: 1_000,
  price: { input: 0, output: 1_000, cacheRead: 0, cacheWrite: 0 } as unknown as NonNullable<
    CallNeed["price"]
  >,
};

/** As many processes as are opened. */
function place() {
  const folder = mkdtempSync(join(tmpdir(), "retinue-ledger-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "unattended.json");
  return { file, open: () => openUnattendedLedger({ file, clock }) };
}

/** Another process that has ended since. */
async function gone() {
  const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"]);
  const identity = identifyProcess(child.pid ?? 0);
  child.kill("SIGKILL");
  await once(child, "exit");
  return identity;
}

const a = { session: "a", account: "key" };
const b = { session: "b", account: "key" };

test("sessions of one key have one ceiling together, over processes, and those of another key have theirs [LIM-7]", async () => {
  const { open } = place();
  const [first, second] = [open(), open()];
  const paid = await first.budget(a, { maxUsd: 2 }).reserve(need, { signal });
  expect(paid).toMatchObject({ type: "reserved", maxOutput: 1_000 });
  if (paid.type === "reserved") paid.settle({ usd: 1.5, tokens: 1 });
  const other = second.budget(b, { maxUsd: 2 });
  expect(await other.reserve(need, { signal })).toMatchObject({
    type: "refused",
    reason: "max_budget",
    error: expect.stringContaining("0.50 of 2.00 US dollars that may be spent unattended"),
  });
  const ofAnother = second.budget({ session: "b", account: "other" }, { maxUsd: 2 });
  expect(await ofAnother.reserve(need, { signal })).toMatchObject({ type: "reserved" });
});

test("what is held by a call that is going on is waited for, not spent twice [LIM-7]", async () => {
  const { open } = place();
  const held = await open().budget(a, { maxUsd: 1.2 }).reserve(need, { signal });
  const waiting = open().budget(b, { maxUsd: 1.2 }).reserve(need, { signal });
  await new Promise((resolve) => setTimeout(resolve, 20));
  if (held.type === "reserved") held.settle({ usd: 0.1, tokens: 1 });
  expect(await waiting).toMatchObject({ type: "reserved" });
});

test("a call whose process died counts as what it held [LIM-7]", async () => {
  const { file, open } = place();
  const dead = await gone();
  writeFileSync(
    file,
    JSON.stringify({
      version: 1,
      entries: [{ ...a, usd: 0.5, process: dead }],
      holds: [{ ...a, id: "x", usd: 1, process: dead }],
    }),
  );
  const ledger = open();
  expect(ledger.counts(a)).toBe(true);
  expect(ledger.isInUse("key")).toBe(false);
  expect(await ledger.budget(b, { maxUsd: 2 }).reserve(need, { signal })).toMatchObject({ type: "refused" });
});

test("a prompt gives back what its session and closed ones took, and not what others that are open take [LIM-7]", async () => {
  const { file, open } = place();
  const ledger = open();
  for (const session of ["a", "b", "c"]) {
    const payer = { session, account: "key" };
    const paid = await ledger.budget(payer, { maxUsd: 9 }).reserve(need, { signal });
    if (paid.type === "reserved") paid.settle({ usd: 1, tokens: 1 });
  }
  await ledger.close("c");
  expect(open().counts({ session: "c", account: "key" })).toBe(true);
  await ledger.end("a");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
    entries: [{ session: "b", usd: 1 }],
    holds: [],
  });
  expect(open().counts(a)).toBe(false);
  expect(open().isInUse("key")).toBe(true);
});

test("a file that is broken, or cannot be written, keeps no session from working, and the process counts for itself [LIM-7]", async () => {
  const { file, open } = place();
  writeFileSync(file, "{");
  expect(open().counts(a)).toBe(false);
  const nowhere = openUnattendedLedger({ file: "/dev/null/unattended.json", clock });
  const budget = nowhere.budget(a, { maxUsd: 1 });
  const paid = await budget.reserve(need, { signal });
  if (paid.type === "reserved") paid.settle({ usd: 1, tokens: 1 });
  expect(await budget.reserve(need, { signal })).toMatchObject({ type: "refused" });
});

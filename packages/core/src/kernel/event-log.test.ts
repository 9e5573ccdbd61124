import { expect, test } from "vitest";
import { createEventLog } from "./event-log.ts";

const numbered = (seq: number, type = "notice") => ({ seq, type });

test("a reader gets what was kept from the number it asks for, and then what comes", async () => {
  const log = createEventLog<ReturnType<typeof numbered>>();
  for (const seq of [1, 2, 3]) log.push(numbered(seq));
  const reader = log.read(2);
  log.push(numbered(4));
  const seen = [await reader.next(), await reader.next(), await reader.next()].map(({ value }) => value.seq);
  expect(seen).toEqual([2, 3, 4]);
  const next = reader.next();
  log.push(numbered(5));
  expect((await next).value).toEqual(numbered(5));
  log.end();
  expect((await reader.next()).done).toBe(true);
});

test("a reader without a number gets only what comes", async () => {
  const log = createEventLog<ReturnType<typeof numbered>>();
  log.push(numbered(1));
  const reader = log.read();
  log.push(numbered(2));
  expect((await reader.next()).value).toEqual(numbered(2));
  await reader.return?.();
  expect((await reader.next()).done).toBe(true);
});

test("old events are dropped, but never before a reader has passed them", async () => {
  const log = createEventLog<ReturnType<typeof numbered>>();
  const slow = log.read(1);
  for (let seq = 1; seq <= 20_000; seq += 1) log.push(numbered(seq));
  expect((await slow.next()).value).toEqual(numbered(1));
  await slow.return?.();
  log.push(numbered(20_001));
  const late = await log.read(1).next();
  expect(late.value.seq).toBeGreaterThan(10_000);
});

test("listeners get each event immediately until they leave", () => {
  const log = createEventLog<ReturnType<typeof numbered>>();
  const received: number[] = [];
  const leave = log.listen(({ seq }) => received.push(seq));
  log.push(numbered(1));
  leave();
  log.push(numbered(2));
  expect(received).toEqual([1]);
});

test("a listener can be given some types of events alone", () => {
  const log = createEventLog<ReturnType<typeof numbered>>();
  const received: number[] = [];
  log.listen(({ seq }) => received.push(seq), new Set(["closed"]));
  log.push(numbered(1));
  log.push(numbered(2, "closed"));
  expect(received).toEqual([2]);
});

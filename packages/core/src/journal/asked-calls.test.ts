import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createAskedCalls, readAskedCalls } from "./asked-calls.ts";

function createSession({ isKept = true } = {}) {
  vi.useFakeTimers();
  const root = mkdtempSync(join(tmpdir(), "asked-calls-"));
  onTestFinished(() => {
    vi.useRealTimers();
    rmSync(root, { recursive: true, force: true });
  });
  const files = { transcript: join(root, "s.jsonl"), directory: join(root, "s") };
  if (isKept) writeFileSync(files.transcript, "");
  return files;
}

test("a call that a person is asked about is seen from outside until it is answered [STU-1]", () => {
  const files = createSession();
  const calls = createAskedCalls(() => files);
  calls.asked("one");
  calls.asked("two");
  expect(readAskedCalls(files).size).toBe(0);
  vi.advanceTimersByTime(500);
  expect([...readAskedCalls(files).keys()]).toEqual(["one", "two"]);
  calls.closed("one");
  vi.advanceTimersByTime(500);
  expect([...readAskedCalls(files).keys()]).toEqual(["two"]);
  calls.closed("two");
  expect(existsSync(join(files.directory, "asked-calls.json"))).toBe(false);
});

test("what a program answers immediately, and a session that is not kept, write nothing [STU-1]", () => {
  const kept = createSession();
  const fast = createAskedCalls(() => kept);
  fast.asked("one");
  fast.closed("one");
  const unkept = createSession({ isKept: false });
  createAskedCalls(() => unkept).asked("one");
  vi.advanceTimersByTime(500);
  expect([existsSync(kept.directory), existsSync(unkept.directory)]).toEqual([false, false]);
});

test("a file that is damaged says nothing [STU-1]", () => {
  const files = createSession();
  expect(readAskedCalls({ directory: join(files.directory, "none") }).size).toBe(0);
  const calls = createAskedCalls(() => files);
  calls.asked("one");
  vi.advanceTimersByTime(500);
  writeFileSync(join(files.directory, "asked-calls.json"), '{"calls":[{"id":1},null,{"id":"a","since":5}]}');
  expect([...readAskedCalls(files)]).toEqual([["a", 5]]);
});

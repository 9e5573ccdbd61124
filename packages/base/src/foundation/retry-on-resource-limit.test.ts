import { expect, test } from "vitest";
import { isResourceLimit, retryOnResourceLimit } from "./retry-on-resource-limit.ts";

const scarce = Object.assign(new Error("too many open files"), { code: "EMFILE" });

test("what the system has no room for at the moment is tried again", async () => {
  let tries = 0;
  const work = () => {
    tries += 1;
    if (tries < 3) throw scarce;
    return "done";
  };
  expect(await retryOnResourceLimit(work)).toBe("done");
  expect(tries).toBe(3);
});

test("any other error is the caller's immediately", async () => {
  let tries = 0;
  const work = async () => {
    tries += 1;
    throw new Error("broken");
  };
  await expect(retryOnResourceLimit(work)).rejects.toThrow("broken");
  expect(tries).toBe(1);
});

test("waiting ends with the signal", async () => {
  const stop = new AbortController();
  const work = async () => {
    stop.abort(new Error("stopped"));
    throw scarce;
  };
  await expect(retryOnResourceLimit(work, { signal: stop.signal })).rejects.toThrow("stopped");
});

test.each(["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"])("%s passes", (code) => {
  expect(isResourceLimit(Object.assign(new Error(code), { code }))).toBe(true);
  expect(isResourceLimit(code)).toBe(false);
});

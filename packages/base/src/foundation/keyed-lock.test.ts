import { describe, expect, test } from "vitest";
import { createKeyedLock } from "./keyed-lock.ts";

const never = new AbortController().signal;

describe("a keyed lock", () => {
  test("runs the actions of one key one after another, in order", async () => {
    const lock = createKeyedLock();
    const log: string[] = [];
    const act = (name: string) =>
      lock.hold("file", never, async () => {
        log.push(`${name} begins`);
        await Promise.resolve();
        log.push(`${name} ends`);
      });
    await Promise.all([act("a"), act("b"), act("c")]);
    expect(log).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  test("keeps keys apart", async () => {
    const lock = createKeyedLock();
    const first = Promise.withResolvers<void>();
    const held = lock.hold("a", never, () => first.promise);
    expect(await lock.hold("b", never, async () => "free")).toBe("free");
    first.resolve();
    await held;
  });

  test("continues after an action that failed", async () => {
    const lock = createKeyedLock();
    await expect(lock.hold("a", never, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect(await lock.hold("a", never, async () => "next")).toBe("next");
  });

  test("lets one who waits give up without letting the next in early", async () => {
    const lock = createKeyedLock();
    const first = Promise.withResolvers<void>();
    const log: string[] = [];
    const held = lock.hold("a", never, () => first.promise.then(() => void log.push("first")));
    const controller = new AbortController();
    const waiting = lock.hold("a", controller.signal, async () => void log.push("waiting"));
    const next = lock.hold("a", never, async () => void log.push("next"));
    controller.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
    const late = lock.hold("a", never, async () => void log.push("late"));
    first.resolve();
    await Promise.all([held, next, late]);
    expect(log).toEqual(["first", "next", "late"]);
  });
});

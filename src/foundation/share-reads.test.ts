import { describe, expect, test } from "vitest";
import { shareReads } from "./share-reads.ts";

/** A read that ends when it is allowed to, and counts. */
function createSource() {
  const pending: PromiseWithResolvers<void>[] = [];
  let state = "first";
  let count = 0;
  return {
    set: (value: string) => {
      state = value;
    },
    count: () => count,
    end: () => pending.shift()?.resolve(),
    fail: () => pending.shift()?.reject(new Error("unreadable")),
    read: shareReads(async () => {
      count += 1;
      const seen = state;
      const gate = Promise.withResolvers<void>();
      pending.push(gate);
      await gate.promise;
      return seen;
    }),
  };
}

describe("shareReads", () => {
  test("callers that ask during a read share the next one, which sees what was written before they asked", async () => {
    const source = createSource();
    const early = source.read();
    source.set("second");
    const late = [source.read(), source.read(), source.read()];
    source.end();
    expect(await early).toBe("first");
    source.end();
    expect(await Promise.all(late)).toEqual(["second", "second", "second"]);
    expect(source.count()).toBe(2);
  });

  test("a read that failed is not kept", async () => {
    const source = createSource();
    const early = source.read();
    const late = source.read();
    source.fail();
    await expect(early).rejects.toThrow("unreadable");
    source.end();
    expect(await late).toBe("first");
    const again = source.read();
    source.end();
    expect(await again).toBe("first");
    expect(source.count()).toBe(3);
  });
});

import { expect, it } from "vitest";
import { createGroupSync, createSharedWork } from "./append-log.ts";

/** A disk whose syncs end when the test says so. */
function slowDisk() {
  const waiting: PromiseWithResolvers<void>[] = [];
  return {
    waiting,
    dataSync: () => {
      const one = Promise.withResolvers<void>();
      waiting.push(one);
      return one.promise;
    },
  };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

it("callers that ask while a sync runs share the next one [TRN-2]", async () => {
  const disk = slowDisk();
  let length = 10;
  const group = createGroupSync({ file: "f", descriptor: 0, length: () => length, newIn: [], ...disk });
  const first = group.upTo(10);
  length = 40;
  const later = [group.upTo(20), group.upTo(30), group.upTo(40)];
  expect(disk.waiting).toHaveLength(1);
  disk.waiting[0]?.resolve();
  await first;
  await tick();
  expect(disk.waiting).toHaveLength(2);
  disk.waiting[1]?.resolve();
  await Promise.all(later);
  await group.upTo(35);
  expect(disk.waiting).toHaveLength(2);
});

it("a sync that began after the bytes were written serves callers that ask for them", async () => {
  const disk = slowDisk();
  const group = createGroupSync({ file: "f", descriptor: 0, length: () => 10, newIn: [], ...disk });
  const both = [group.upTo(10), group.upTo(10)];
  expect(disk.waiting).toHaveLength(1);
  disk.waiting[0]?.resolve();
  await Promise.all(both);
});

it("a disk that has failed once is not asked again, because it would wrongly succeed [TRN-2]", async () => {
  const disk = slowDisk();
  const group = createGroupSync({ file: "f", descriptor: 0, length: () => 10, newIn: [], ...disk });
  const first = group.upTo(10);
  disk.waiting[0]?.reject(Object.assign(new Error("i/o error"), { code: "EIO" }));
  await expect(first).rejects.toThrow("Could not bring to the disk f: i/o error");
  await expect(group.upTo(10)).rejects.toThrow("i/o error");
  expect(disk.waiting).toHaveLength(1);
  expect(group.failure()).toBeInstanceOf(Error);
});

it("a descriptor is closed only behind the syncs that use it", async () => {
  const disk = slowDisk();
  const group = createGroupSync({ file: "f", descriptor: 0, length: () => 10, newIn: [], ...disk });
  let isClosed = false;
  void group.upTo(10);
  group.whenIdle(() => {
    isClosed = true;
  });
  await tick();
  expect(isClosed).toBe(false);
  disk.waiting[0]?.resolve();
  await tick();
  expect(isClosed).toBe(true);
});

it("files that are new in one folder share a sync, and one that came while it ran waits for the next [TRN-2]", async () => {
  const disk = slowDisk();
  const sync = createSharedWork(disk.dataSync);
  const first = sync("/a");
  const later = [sync("/a"), sync("/a"), sync("/a")];
  const elsewhere = sync("/b");
  expect(disk.waiting).toHaveLength(2);
  disk.waiting[1]?.resolve();
  await elsewhere;
  let isSettled = false;
  void later[0]?.then(() => {
    isSettled = true;
  });
  disk.waiting[0]?.resolve();
  await first;
  await tick();
  expect([disk.waiting.length, isSettled]).toEqual([3, false]);
  disk.waiting[2]?.resolve();
  await Promise.all(later);
  void sync("/a");
  expect(disk.waiting).toHaveLength(4);
});

it("a sync of a folder that fails fails for those it was for, and not for those who wait for the next", async () => {
  const disk = slowDisk();
  const sync = createSharedWork(disk.dataSync);
  const first = sync("/a");
  const later = sync("/a");
  disk.waiting[0]?.reject(new Error("i/o error"));
  await expect(first).rejects.toThrow("i/o error");
  await tick();
  disk.waiting[1]?.resolve();
  await later;
});

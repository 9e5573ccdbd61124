import { expect, test } from "vitest";
import { createFeed } from "./feed.ts";

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const value of values) seen.push(value);
  return seen;
}

test("every listener gets what follows its coming, and the end", async () => {
  const feed = createFeed<number>();
  const early = collect(feed.subscribe());
  feed.publish(1);
  const late = collect(feed.subscribe());
  feed.publish(2);
  feed.end();
  expect(await Promise.all([early, late, collect(feed.subscribe())])).toEqual([[1, 2], [2], []]);
});

test("a listener that leaves gets nothing more, also when it never began", async () => {
  const feed = createFeed<number>();
  const listener = feed.subscribe();
  feed.publish(1);
  await listener.return?.();
  feed.publish(2);
  const left = feed.subscribe();
  for (const value of [3, 4]) feed.publish(value);
  for await (const value of left) {
    expect(value).toBe(3);
    break;
  }
  feed.publish(5);
  expect(await left.next()).toMatchObject({ done: true });
  expect(await collect(listener)).toEqual([]);
});

test("leaving wakes a listener that waits", async () => {
  const listener = createFeed<number>().subscribe();
  const waiting = listener.next();
  await listener.return?.();
  expect(await waiting).toMatchObject({ done: true });
});

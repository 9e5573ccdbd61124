import { expect, test } from "vitest";
import { createPromptQueue } from "./prompt-queue.ts";

function queueOf(...texts: readonly string[]) {
  let changes = 0;
  const queue = createPromptQueue(() => {
    changes += 1;
  });
  for (const [at, content] of texts.entries()) queue.add({ content, id: `p${at}` });
  return { ...queue, changes: () => changes };
}

test("prompts come out in the order in which they were added, under their ids", () => {
  const queue = queueOf("one", "two");
  expect([queue.next()?.id, queue.next()?.id, queue.next()]).toEqual(["p0", "p1", undefined]);
  expect(queue.changes()).toBe(4);
});

test("in the middle of a turn everything before the next command can be read", () => {
  const queue = queueOf("one", "two", "/compact", "three");
  expect(queue.takeReadable().map(({ content }) => content)).toEqual(["one", "two"]);
  expect(queue.takeReadable()).toEqual([]);
  expect(queue.list().map(({ content }) => content)).toEqual(["/compact", "three"]);
});

test("a prompt that only looks like a command can be read when it is verbatim", () => {
  const queue = queueOf();
  queue.add({ content: "/etc/hosts is odd", verbatim: true });
  expect(queue.takeReadable()).toHaveLength(1);
});

test("what asked nothing is put in front of the next prompt", () => {
  const queue = queueOf();
  queue.add({ content: "note", asks: false });
  queue.add({ content: "question" });
  expect(queue.next()?.content).toBe("note");
  expect(queue.next()?.content).toEqual([
    { type: "text", text: "note" },
    { type: "text", text: "question" },
  ]);
});

test("one prompt or all can be withdrawn", () => {
  const queue = queueOf("one", "two", "three");
  expect(queue.withdraw("p1").map(({ id }) => id)).toEqual(["p1"]);
  expect(queue.withdraw("p1")).toEqual([]);
  expect(queue.withdraw().map(({ id }) => id)).toEqual(["p0", "p2"]);
  expect(queue.list()).toEqual([]);
});

import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { expect, onTestFinished, test } from "vitest";
import type { RunLimits } from "../../planning/agent-plan.ts";
import { createTreeBudget, type Reserved } from "../../tasks/tree-budget.ts";
import { createRemoteBudget, serveBudget } from "./create-remote-budget.ts";

const limit = (value: number) => ({ value, from: "the test" });
const { signal } = new AbortController();
const need = { model: "m", inputTokens: 1000, maxOutput: 4000 };

/** A budget here and a member elsewhere: everything between them passes through JSON. */
function connect(limits: RunLimits) {
  const tree = createTreeBudget(limits);
  const lines: string[] = [];
  const server = serveBudget(tree, (line) => {
    const text = JSON.stringify(line);
    lines.push(text);
    queueMicrotask(() => remote.take(JSON.parse(text) as JsonRecord));
  });
  const remote = createRemoteBudget((request) => server.take(JSON.parse(JSON.stringify(request))));
  onTestFinished(() => server[Symbol.dispose]());
  return { tree, server, member: remote.budget.agent(undefined), remote };
}

function granted(reserved: Reserved) {
  if (reserved.type === "refused") throw new Error(reserved.error);
  return reserved;
}

test("a member in another process waits for what others hold, and gives back what it did not need [TEA-8, LIM-3]", async () => {
  const { tree, member } = connect({ tokens: limit(6000) });
  const first = granted(await tree.agent(undefined).reserve(need, { signal }));
  let second: Reserved | undefined;
  const waiting = member.reserve(need, { signal }).then((reserved) => {
    second = reserved;
    return granted(reserved);
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(second).toBeUndefined();
  first.settle({ usd: 0, tokens: 500 });
  const held = await waiting;
  held.settle({ usd: 0, tokens: 1500 });
  await new Promise((resolve) => setImmediate(resolve));
  expect(tree.spent().tokens).toBe(2000);
  expect(granted(await member.reserve(need, { signal })).maxOutput).toBe(3000);
});

test("what is not left is refused there, with the words of the tree [TEA-8, LIM-3]", async () => {
  const { tree, member } = connect({ tokens: limit(1500), toolCalls: limit(3) });
  expect(await member.reserve(need, { signal })).toMatchObject({
    type: "refused",
    error: expect.stringContaining("of 1500 tokens of the whole tree left"),
  });
  expect(await member.takeCalls(2)).toEqual({ granted: 2 });
  expect(await member.takeCalls(2)).toMatchObject({ granted: 1, limit: { reason: "max_tool_calls" } });
  expect(tree.refusal()).toMatchObject({ reason: "max_tool_calls" });
});

test("an attempt that failed is paid, and ends the call when the rest is not enough [TEA-8, LIM-3]", async () => {
  const { member } = connect({ tokens: limit(6000) });
  const held = granted(await member.reserve(need, { signal }));
  expect(await held.renew({ usd: 0, tokens: 900 })).toBeUndefined();
  expect(await held.renew({ usd: 0, tokens: 900 })).toMatchObject({ reason: "max_total_tokens" });
});

test("a member that is stopped while it waits, or dies with a call, keeps nothing from others [TEA-8, LIM-3]", async () => {
  const { tree, server, member } = connect({ tokens: limit(6000) });
  const held = granted(await member.reserve(need, { signal }));
  const stop = new AbortController();
  const waiting = member.reserve(need, { signal: stop.signal });
  stop.abort(new Error("stopped"));
  await expect(waiting).rejects.toThrow("stopped");
  expect(held.maxOutput).toBe(4000);
  // It died: its prompt counts, the answer that was never seen does not.
  server[Symbol.dispose]();
  expect(tree.spent().tokens).toBe(1000);
  expect(granted(await tree.agent(undefined).reserve(need, { signal })).maxOutput).toBe(4000);
});

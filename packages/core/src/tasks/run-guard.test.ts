import { createManualClock } from "@retinue/testing/manual-clock.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { expect, test } from "vitest";
import type { CallRequest } from "../loop/loop-ports.ts";
import { defineTool, type Tool } from "../tools/tool.ts";
import { createRunGuard } from "./run-guard.ts";
import { createTreeBudget } from "./tree-budget.ts";
import { createStopwatch } from "./watch-run.ts";

const signal = new AbortController().signal;
const price = { input: 10, output: 50, cacheRead: 1, cacheWrite: 10 };
const from = "a test";

function tool(effect: Tool["effect"]): Tool {
  const call = async () => ({ content: "" });
  return defineTool({ name: "T", description: "d", effect, inputSchema: { type: "object" }, call });
}

function request(effect: Tool["effect"]): CallRequest {
  return { call: { type: "tool_use", id: "1", name: "T", input: {} }, tool: tool(effect), input: {} };
}

test("[LIM-3] a call that starts a child has no limit of its own; any other is stopped by the run's clock", async () => {
  const clock = createManualClock();
  const stopwatch = createStopwatch(clock);
  const {
    capability: { limits },
  } = createRunGuard({
    limits: { toolTimeMs: { value: 2000, from } },
    tree: createTreeBudget(undefined),
    stopwatch,
  });
  stopwatch.start();
  using spawning = limits.limitCall?.(request("spawn"), signal);
  using reading = limits.limitCall?.(request("read"), signal);
  await clock.advance(2000);
  expect(spawning?.signal.aborted).toBe(false);
  expect(reading?.signal.reason).toMatchObject({ code: "tool-timeout" });
  expect(clock.sleeping()).toBe(0);
});

test("[LIM-5] the time an agent waits for money that others hold is not its own", async () => {
  const clock = createManualClock();
  const stopwatch = createStopwatch(clock);
  const tree = createTreeBudget({ costUsd: { value: 0.6, from } });
  const other = await tree
    .agent(undefined)
    .reserve({ model: "m", inputTokens: 1000, maxOutput: 10_000, price }, { signal });
  const { pay } = createRunGuard({ limits: undefined, tree, stopwatch });
  const scripted = createScriptedModel(["Hi."], { facts: { price, maxOutputTokens: 10_000 } });
  stopwatch.start();
  const asked = { system: [], tools: [], messages: [{ role: "user", content: "Go." } as const] };
  const events = pay(scripted).stream(asked, { signal })[Symbol.asyncIterator]();
  const first = events.next();
  await clock.advance(60_000);
  expect(stopwatch.elapsed()).toBe(0);
  if (other.type === "reserved") other.settle({ usd: 0, tokens: 0 });
  expect(await first).toMatchObject({ done: false });
  await clock.advance(5);
  expect(stopwatch.elapsed()).toBe(5);
  await events.return?.();
});

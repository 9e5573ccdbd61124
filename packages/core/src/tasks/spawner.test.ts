import { expect, test } from "vitest";
import type { UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import type { OpenedChild } from "./run-child.ts";
import { createSpawner } from "./spawner.ts";
import { createTaskManager } from "./task-manager.ts";

const totals = { usage: noUsage, turns: 1, toolUses: 0, durationMs: 1, modelMs: 1 };
const ended: RunEvent = {
  type: "run-ended",
  ending: { status: "completed", reason: "end_turn", text: "Found it.", denials: [], totals },
};

test("[BGR-2] an end counts as pending until the parent has been notified, also while the record is being closed", async () => {
  const closing = Promise.withResolvers<undefined>();
  const notices: UserMessage[] = [];
  const plan = {
    agent: { id: "a1", name: "helper" },
    task: { agentType: "helper", description: "look", background: true, parentId: "main" },
  } as ChildPlan;
  const child: OpenedChild = {
    type: "opened",
    execution: { plan, history: [] },
    executor: {
      async *execute() {
        yield ended;
      },
    },
    control: {},
    outputFile: undefined,
    sinks: [],
    pendingMessages: [],
    close: () => closing.promise,
  };
  const tasks = createTaskManager({ maxRunning: 1, now: () => 0 });
  const spawner = createSpawner({
    tasks,
    plan: async () => ({ type: "planned", plan }),
    open: async () => child,
    openPlan: async () => child,
    notify: (message) => void notices.push(message),
  });
  await spawner.start({ description: "look", prompt: "Look.", origin: "model" });
  while (tasks.get("a1")?.status !== "completed") await Promise.resolve();
  expect([spawner.hasPendingNotices(), notices.length]).toEqual([true, 0]);
  closing.resolve(undefined);
  await tasks.ended("a1");
  expect([spawner.hasPendingNotices(), notices.length]).toEqual([false, 1]);
});

import { expect, test } from "vitest";
import type { UserMessage } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { noUsage } from "../../conversation/usage.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import type { OpenedChild } from "../../tasks/run-agent.ts";
import { createTaskManager } from "../../tasks/task-manager.ts";
import { createLauncher } from "./open-spawner.ts";

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
    plan,
    async *events() {
      yield ended;
    },
    outputFile: undefined,
    sinks: [],
    pendingMessages: [],
    close: () => closing.promise,
  };
  const tasks = createTaskManager({ maxRunning: 1, now: () => 0 });
  const launcher = createLauncher(tasks, { notify: (message) => void notices.push(message) });
  await launcher.launch(child, 1);
  while (tasks.get("a1")?.status !== "completed") await Promise.resolve();
  expect([launcher.hasPendingNotices(), notices.length]).toEqual([true, 0]);
  closing.resolve(undefined);
  await tasks.ended("a1");
  expect([launcher.hasPendingNotices(), notices.length]).toEqual([false, 1]);
});

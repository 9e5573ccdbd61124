import { expect, test } from "vitest";
import type { RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import type { SpawnRequest } from "../planning/agent-request.ts";
import type { FoundTask } from "./find-tasks.ts";
import { createMessenger } from "./messenger.ts";
import type { SpawnOutcome } from "./spawn-outcome.ts";
import { createTaskManager } from "./task-manager.ts";

const { signal } = new AbortController();
const completed: RunEvent = {
  type: "run-ended",
  ending: {
    status: "completed",
    reason: "end_turn",
    text: "Done.",
    denials: [],
    totals: { usage: noUsage, turns: 1, toolUses: 0, durationMs: 1, modelMs: 1 },
  },
};

function setUp(onDisk: readonly Partial<FoundTask>[] = [], outcome?: SpawnOutcome) {
  const tasks = createTaskManager({ maxRunning: 10, now: () => 1 });
  const resumed: SpawnRequest[] = [];
  const lost: string[] = [];
  const resumedOnce = Promise.withResolvers<void>();
  const messenger = createMessenger({
    tasks,
    // Only the fields that a message asks for.
    find: async () => onDisk as readonly FoundTask[],
    async resume(request) {
      resumed.push(request);
      resumedOnce.resolve();
      return outcome ?? { type: "ended", text: "Again.", isError: false, data: {} };
    },
    onLost: ({ id }, reason) => lost.push(`${id}: ${reason}`),
  });
  const start = (id: string, name: string | undefined, until: Promise<void>) =>
    tasks.start({
      start: {
        id,
        agentType: "Explore",
        description: `task ${id}`,
        background: true,
        parentId: "main",
        name,
      },
      async *events() {
        yield { type: "turn-started", turn: 1 };
        await until;
        yield completed;
      },
    });
  return { tasks, messenger, resumed, lost, start, resumedOnce: resumedOnce.promise };
}

test("a message that a child took and did not read before it ended resumes it [TRN-3]", async () => {
  const { messenger, resumed, start, resumedOnce } = setUp();
  const gate = Promise.withResolvers<void>();
  start("a1", undefined, gate.promise);
  expect(await messenger.send("a1", "One.", { signal })).toMatchObject({ type: "queued" });
  expect(await messenger.send("a1", "Two.", { signal })).toMatchObject({ type: "queued" });
  gate.resolve();
  await resumedOnce;
  expect(resumed).toMatchObject([{ resume: "a1", prompt: "One.\n\nTwo.", background: true }]);
});

test("where that fails, the sender is reported [TRN-3]", async () => {
  const { tasks, messenger, lost, start, resumedOnce } = setUp([], { type: "refused", reason: "no place" });
  const gate = Promise.withResolvers<void>();
  start("a1", undefined, gate.promise);
  await messenger.send("a1", "One.", { signal });
  gate.resolve();
  await resumedOnce;
  await tasks.ended("a1");
  await new Promise((resolve) => setImmediate(resolve));
  expect(lost).toEqual(["a1: no place"]);
});

test("a name means the one that runs; several that ended are not guessed between [TRN-3]", async () => {
  const gone = { agentType: "Explore", description: "d", background: false, state: "completed" } as const;
  const { messenger, start, tasks } = setUp([
    { ...gone, id: "a2", name: "ada" },
    { ...gone, id: "a3", name: "ada" },
    { ...gone, id: "a4", name: "bob" },
    { ...gone, id: "a5", state: "running" },
  ]);
  const gate = Promise.withResolvers<void>();
  start("a1", "ada", gate.promise);
  expect(await messenger.send("ada", "Hi.", { signal })).toMatchObject({
    type: "queued",
    recipient: { id: "a1" },
  });
  gate.resolve();
  await tasks.ended("a1");
  expect(await messenger.send("ada", "Hi.", { signal })).toMatchObject({
    type: "refused",
    reason: expect.stringContaining("a1, a2, a3"),
  });
  expect(await messenger.send("bob", "Hi.", { signal })).toMatchObject({
    type: "resumed",
    recipient: { id: "a4" },
  });
  expect(await messenger.send("a5", "Hi.", { signal })).toMatchObject({
    type: "refused",
    reason: expect.stringContaining("another process"),
  });
});

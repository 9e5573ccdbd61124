import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { foldTask, hasEnded, startedTask } from "../protocol/agent-state.ts";
import { createTaskManager, type TaskManager, type TaskRun } from "./task-manager.ts";

const never = new AbortController().signal;
const totals = { usage: noUsage, turns: 1, toolUses: 0, durationMs: 1, modelMs: 1 };
const completed: RunEvent = {
  type: "run-ended",
  ending: { status: "completed", reason: "end_turn", text: "Done.", denials: [], totals },
};

function manager(maxRunning = 10, overflow: "refuse" | "queue" | "usual" = "refuse"): TaskManager {
  let clock = 0;
  const now = () => {
    clock += 1;
    return clock;
  };
  return createTaskManager({ maxRunning, ...(overflow === "usual" ? {} : { overflow }), now });
}

function task(id: string, events: TaskRun["events"], more: Partial<TaskRun> = {}): TaskRun {
  return {
    start: { id, agentType: "Explore", description: `task ${id}`, background: false, parentId: "main" },
    events,
    ...more,
  };
}

const quick: TaskRun["events"] = async function* () {
  yield { type: "turn-started", turn: 1 };
  yield completed;
};

/** What collects garbage, which a process otherwise does when it likes. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

/** Runs until its signal is aborted, then ends as the loop does. */
const patient: TaskRun["events"] = async function* (_line, signal) {
  yield { type: "turn-started", turn: 1 };
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  const ending: RunEnding = { status: "stopped", reason: "aborted", text: "half", denials: [], totals };
  yield { type: "run-ended", ending };
};

describe("running children", () => {
  test("a child runs to its end, and its end is reported once", async () => {
    const tasks = manager();
    const ends: string[] = [];
    tasks.start(task("a", quick, { onEnd: ({ status }) => void ends.push(status) }));
    expect(await tasks.wait("a", { signal: never })).toMatchObject({
      status: "completed",
      ending: { text: "Done." },
    });
    expect(ends).toEqual(["completed"]);
  });

  test("a child that throws, or ends without a word, has failed; its siblings continue", async () => {
    const tasks = manager();
    tasks.start(
      task("bad", async function* () {
        yield { type: "turn-started", turn: 1 };
        throw new Error("boom");
      }),
    );
    tasks.start(task("mute", async function* () {}));
    tasks.start(task("good", quick));
    expect(await tasks.ended("bad")).toMatchObject({ status: "failed", ending: { error: "boom" } });
    expect(await tasks.ended("mute")).toMatchObject({ status: "failed", ending: { reason: "no-end" } });
    expect(await tasks.ended("good")).toMatchObject({ status: "completed" });
  });

  test("a listener that throws ends its own child only", async () => {
    const tasks = manager();
    tasks.start(
      task("a", quick, {
        sinks: [
          {
            take() {
              throw new Error("disk full");
            },
          },
        ],
      }),
    );
    tasks.start(
      task("b", quick, {
        onEnd: () => {
          throw new Error("hook broke");
        },
      }),
    );
    expect(await tasks.ended("a")).toMatchObject({ status: "failed", ending: { error: "disk full" } });
    expect(await tasks.ended("b")).toMatchObject({ status: "completed" });
  });
});

describe("[LIM-1] places", () => {
  test("one child too many is refused, and an ended one holds no place", async () => {
    const tasks = manager(2);
    tasks.start(task("a", patient));
    tasks.start(task("b", patient));
    expect(tasks.start(task("c", quick))).toEqual({
      type: "refused",
      reason: "max concurrent agents reached (2)",
    });
    await tasks.stop("a", "program");
    expect(tasks.start(task("c", quick))).toMatchObject({ type: "started" });
    await tasks.ended("c");
    await tasks[Symbol.asyncDispose]();
  });

  test("unless given otherwise one that a caller waits for is queued, and one in the background refused", async () => {
    const tasks = manager(1, "usual");
    const inBackground = (run: TaskRun): TaskRun => ({ ...run, start: { ...run.start, background: true } });
    tasks.start(task("a", patient));
    expect(tasks.refusal(true)).toBe("max concurrent agents reached (1)");
    expect(tasks.start(inBackground(task("b", quick)))).toMatchObject({ type: "refused" });
    expect(tasks.refusal(false)).toBeUndefined();
    expect(tasks.start(task("c", quick))).toMatchObject({ type: "started", state: { status: "queued" } });
    await tasks.stop("a", "program");
    expect(await tasks.ended("c")).toMatchObject({ status: "completed" });
  });

  test("the queue keeps the order of the calls, also where an earlier one took longer to prepare", async () => {
    const tasks = manager(1, "usual");
    const order: string[] = [];
    const noted = (id: string, at: number): TaskRun =>
      task(id, quick, { order: at, onEnd: () => void order.push(id) });
    for (const run of [noted("a", 1), noted("c", 3), noted("d", 4), noted("b", 2)]) tasks.start(run);
    await Promise.all(["a", "b", "c", "d"].map((id) => tasks.ended(id)));
    expect(order).toEqual(["a", "b", "c", "d"]);
  });

  test("with a queue it waits for its turn, in order", async () => {
    const tasks = manager(1, "queue");
    const order: string[] = [];
    for (const id of ["a", "b", "c"]) {
      const started = tasks.start(task(id, quick, { onEnd: () => void order.push(id) }));
      expect(started).toMatchObject({
        type: "started",
        state: { status: id === "a" ? "running" : "queued" },
      });
    }
    await Promise.all(["a", "b", "c"].map((id) => tasks.ended(id)));
    expect(order).toEqual(["a", "b", "c"]);
  });

  test("[LIM-1] one that comes while another still tidies up does not overtake those that wait", async () => {
    const tasks = manager(1, "queue");
    const order: string[] = [];
    const tidied = Promise.withResolvers<void>();
    const noted = (id: string): TaskRun["events"] =>
      async function* () {
        order.push(id);
        yield completed;
      };
    tasks.start(task("a", noted("a"), { onEnd: () => tidied.promise }));
    tasks.start(task("b", noted("b")));
    await tasks.ended("b");
    tasks.start(task("c", noted("c")));
    await tasks.ended("c");
    expect(order).toEqual(["a", "b", "c"]);
    tidied.resolve();
    await tasks.ended("a");
  });

  test("[SDK-3] only so many that have ended are kept, oldest first to go, and running ones always", async () => {
    let clock = 0;
    const tasks = createTaskManager({ maxRunning: 50, keptEnded: 2, now: () => ++clock });
    tasks.start(task("long", patient));
    for (const id of ["a", "b", "c", "d"]) {
      tasks.start(task(id, quick));
      await tasks.ended(id);
    }
    expect(tasks.list().map(({ id }) => id)).toEqual(["long", "c", "d"]);
    expect(tasks.get("a")).toBeUndefined();
    expect(tasks.takeTotals()).toMatchObject({ turns: 4 });
    await tasks.stop("long", "user");
    expect(tasks.list().map(({ id }) => id)).toEqual(["long", "d"]);
  });

  test("[SDK-3] one that was taken up again is as young as its last run", async () => {
    let clock = 0;
    const tasks = createTaskManager({ maxRunning: 50, keptEnded: 2, now: () => ++clock });
    for (const id of ["a", "b", "a", "c"]) {
      tasks.start(task(id, quick));
      await tasks.ended(id);
    }
    expect(tasks.list().map(({ id }) => id)).toEqual(["a", "c"]);
  });

  test("[SDK-3] what a run was made of is let go of at its end", async () => {
    const tasks = manager();
    let held: WeakRef<object> | undefined;
    const begin = (): void => {
      const history = { messages: Array(1000).fill("long ago") };
      held = new WeakRef(history);
      tasks.start(
        task("a", async function* () {
          if (history.messages.length > 0) yield completed;
        }),
      );
    };
    begin();
    await tasks.ended("a");
    const collect = collector();
    for (let round = 0; round < 20 && held?.deref() !== undefined; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    expect(held?.deref()).toBeUndefined();
    expect(tasks.get("a")).toMatchObject({ status: "completed" });
  });

  test("[LIM-4] the runs of an agent that was taken up again all count, each once", async () => {
    const tasks = manager();
    for (const _run of [1, 2]) {
      tasks.start(task("a", quick));
      await tasks.ended("a");
    }
    expect(tasks.list()).toHaveLength(1);
    expect(tasks.takeTotals()).toMatchObject({ turns: 2, durationMs: 2 });
    expect(tasks.takeTotals()).toBeUndefined();
  });

  test("[LIM-4] what a child has used counts while it runs, and its end adds only the rest", async () => {
    const tasks = manager();
    const usage = { ...noUsage, inputTokens: 100 };
    const answered: RunEvent = {
      type: "assistant-answered",
      id: "1",
      message: { role: "assistant", content: [] },
      usage,
      model: "m",
      stopReason: "end_turn",
      costUsd: 0.25,
    };
    const half = Promise.withResolvers<void>();
    const rest = Promise.withResolvers<void>();
    tasks.start(
      task("a", async function* () {
        yield answered;
        half.resolve();
        await rest.promise;
        yield answered;
        const whole = { ...totals, usage: { ...usage, inputTokens: 200 }, turns: 2, costUsd: 0.5 };
        yield {
          type: "run-ended",
          ending: { status: "completed", reason: "end_turn", text: "", denials: [], totals: whole },
        };
      }),
    );
    await half.promise;
    expect(tasks.takeTotals()).toMatchObject({ turns: 1, usage, costUsd: 0.25 });
    expect(tasks.takeTotals()).toBeUndefined();
    rest.resolve();
    await tasks.ended("a");
    expect(tasks.takeTotals()).toMatchObject({ turns: 1, usage, costUsd: 0.25, durationMs: 1 });
    expect(tasks.takeTotals()).toBeUndefined();
  });

  test("a queued child can be stopped and never runs", async () => {
    const tasks = manager(1, "queue");
    let ran = false;
    tasks.start(task("a", patient));
    tasks.start(
      task("b", async function* () {
        ran = true;
        yield completed;
      }),
    );
    expect(await tasks.stop("b", "program")).toMatchObject({ status: "stopped" });
    await tasks.stop("a", "program");
    expect(ran).toBe(false);
  });

  test("[LIM-1] who waits sees how many are before it, and moves up when one of them leaves", async () => {
    const tasks = manager(1, "queue");
    for (const id of ["a", "b", "c", "d"]) tasks.start(task(id, patient));
    const positions = () => tasks.list().map(({ queuePosition }) => queuePosition);
    expect(positions()).toEqual([undefined, 1, 2, 3]);
    await tasks.stop("b", "user");
    expect(positions()).toEqual([undefined, undefined, 1, 2]);
    await tasks.stop("a", "user");
    expect(tasks.get("c")).toMatchObject({ status: "running" });
    expect(tasks.get("d")).toMatchObject({ status: "queued", queuePosition: 1 });
    await tasks[Symbol.asyncDispose]();
  });

  test("[SPN-6, AGT-5] a child that is stopped in the queue lets go of what it holds, and its end is recorded", async () => {
    const tasks = manager(1, "queue");
    const received: string[] = [];
    tasks.start(task("a", patient));
    tasks.start(
      task("b", quick, {
        sinks: [{ take: (event) => void received.push(event.type) }],
        onEnd: async ({ ending }) => void received.push(`${ending?.status} ${ending?.reason}`),
      }),
    );
    expect(await tasks.stop("b", "user")).toMatchObject({
      ending: { status: "stopped", reason: "stopped-by-user", text: "", totals: { turns: 0 } },
    });
    expect(received).toEqual(["run-ended", "stopped stopped-by-user"]);
    await tasks[Symbol.asyncDispose]();
    expect(received).toHaveLength(2);
  });

  test("[AGT-5] a child that breaks hands in what was seen of it, in the same shape as any other", async () => {
    const tasks = manager();
    const recorded: string[] = [];
    const usage = { ...noUsage, inputTokens: 5, outputTokens: 7 };
    tasks.start(
      task(
        "a",
        async function* () {
          yield {
            type: "assistant-answered",
            id: "m",
            model: "m",
            message: { role: "assistant", content: [{ type: "text", text: "So far." }] },
            stopReason: "tool_use",
            usage,
            costUsd: 0.5,
          };
          throw new Error("broken");
        },
        { sinks: [{ take: (event) => void recorded.push(event.type) }] },
      ),
    );
    expect((await tasks.ended("a"))?.ending).toMatchObject({
      status: "failed",
      reason: "error",
      error: "broken",
      text: "So far.",
      denials: [],
      totals: { usage, turns: 1, toolUses: 0, costUsd: 0.5 },
    });
    expect(recorded).toEqual(["assistant-answered", "run-ended"]);
  });

  test("[LIM-5] a silent child is seen as silent until it gives a sign", () => {
    const start = startedTask({ ...task("a", quick).start, at: 1 });
    const silent = foldTask(start, { type: "run-stalled", silentMs: 60_000, stops: false }, 5);
    expect(silent).toMatchObject({ silentMs: 60_000, lastSignAt: 1, activity: "silent for 60 s" });
    const awake = foldTask(silent, { type: "turn-started", turn: 1 }, 9);
    expect(awake).toMatchObject({ lastSignAt: 9, activity: "thinking" });
    expect(awake.silentMs).toBeUndefined();
  });

  test("a thousand children leave no place taken", async () => {
    const tasks = manager(10, "queue");
    for (let index = 0; index < 1000; index += 1) tasks.start(task(String(index), quick));
    await Promise.all(tasks.list().map(({ id }) => tasks.ended(id)));
    expect(tasks.list().every(hasEnded)).toBe(true);
    expect(tasks.start(task("last", quick))).toMatchObject({ state: { status: "running" } });
  });
});

describe("stopping, detaching, sending", () => {
  test("a stop says by whom, and stopping an ended child changes nothing", async () => {
    const tasks = manager();
    tasks.start(task("a", patient));
    expect(await tasks.stop("a", "user")).toMatchObject({ status: "stopped", ending: { text: "half" } });
    expect(await tasks.stop("a", "user")).toMatchObject({ status: "stopped" });
    expect(await tasks.stop("nope", "user")).toBeUndefined();
  });

  test("detaching frees who waits and leaves the child unattended", async () => {
    const tasks = manager();
    let attended: () => boolean = () => true;
    tasks.start(
      task("a", (line, signal) => {
        attended = line.attended;
        return patient(line, signal);
      }),
    );
    const waiting = tasks.wait("a", { signal: never });
    expect(attended()).toBe(true);
    expect(tasks.detach("a")).toBe(true);
    expect(await waiting).toMatchObject({ status: "running", background: true });
    expect(attended()).toBe(false);
    await tasks[Symbol.asyncDispose]();
    expect(tasks.get("a")).toMatchObject({ status: "stopped" });
  });

  test("messages wait until the child asks, and an ended child takes none", async () => {
    const tasks = manager();
    const received: unknown[] = [];
    const turn = Promise.withResolvers<void>();
    tasks.start(
      task("a", async function* (line) {
        yield { type: "turn-started", turn: 1 };
        await turn.promise;
        received.push(...line.takeMessages());
        yield completed;
      }),
    );
    expect(tasks.send("a", { role: "user", content: "more" })).toBe(true);
    turn.resolve();
    await tasks.ended("a");
    expect(received).toEqual([{ role: "user", content: "more" }]);
    expect(tasks.send("a", { role: "user", content: "late" })).toBe(false);
  });

  test("who stops waiting is freed immediately", async () => {
    const tasks = manager();
    tasks.start(task("a", patient));
    expect(await tasks.wait("a", { signal: AbortSignal.abort() })).toMatchObject({ status: "running" });
    await tasks[Symbol.asyncDispose]();
  });
});

test("[TSK-4] any prefix of a run's events gives a valid state", () => {
  const event = fc.constantFrom<RunEvent>(
    { type: "turn-started", turn: 1 },
    { type: "call-started", call: { type: "tool_use", id: "1", name: "Read", input: {} }, effect: "read" },
    {
      type: "call-finished",
      call: { type: "tool_use", id: "1", name: "Read", input: {} },
      isError: false,
      durationMs: 1,
    },
    {
      type: "assistant-answered",
      id: "m",
      model: "x",
      message: { role: "assistant", content: [{ type: "text", text: "t" }] },
      stopReason: "end_turn",
      usage: { ...noUsage, outputTokens: 1 },
      costUsd: 1,
    },
    completed,
  );
  fc.assert(
    fc.property(fc.array(event), (events) => {
      let state = startedTask({
        id: "a",
        agentType: "x",
        description: "d",
        background: false,
        parentId: "main",
        at: 0,
      });
      for (const [index, next] of events.entries()) {
        const before = state;
        state = foldTask(state, next, index + 1);
        expect(state.lastSignAt).toBeGreaterThanOrEqual(before.lastSignAt);
        expect(state.turns).toBeGreaterThanOrEqual(before.turns);
      }
      expect(state.usage.outputTokens).toBe(state.turns);
    }),
  );
});

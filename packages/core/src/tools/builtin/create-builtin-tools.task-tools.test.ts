import { describe, expect, test } from "vitest";
import { createSessionFiles } from "../file-ledger.ts";
import type { TaskSource, TaskView } from "../task-source.ts";
import { pageOf } from "../text-page.ts";
import type { ToolContext } from "../tool.ts";
import { createTaskOutputTool, createTaskStopTool } from "./create-builtin-tools.ts";

function createSource(kind: string, tasks: readonly Partial<TaskView>[]) {
  const views = new Map(
    tasks.map((task): [string, TaskView] => {
      const base = {
        kind,
        state: "running",
        description: "Some work",
        owner: "main",
        startedAt: 0,
        lastSignAt: 0,
      };
      return [task.id ?? "", { ...base, id: "", ...task } as TaskView];
    }),
  );
  const gate = Promise.withResolvers<void>();
  const finish = (id: string, state: TaskView["state"]) => {
    const view = views.get(id);
    if (view !== undefined) views.set(id, { ...view, state, endedAt: 9_000 });
    gate.resolve();
  };
  const source: TaskSource = {
    kind,
    find: (id) => views.get(id),
    list: () => [...views.values()],
    output: async (id) => `output of ${id}\n`,
    page: async (id, offset) => pageOf(`output of ${id}\n`, offset, 6),
    ended: (id) => (views.get(id)?.state === "running" ? gate.promise : Promise.resolve()),
    stop: async (id) => finish(id, "stopped"),
  };
  return { source, finish };
}

function context(signal = new AbortController().signal): ToolContext {
  return {
    signal,
    directory: "/p",
    workingDirectories: ["/p"],
    sessionId: "s1",
    agent: { id: "main", name: "main" },
    agentPath: [{ id: "main", name: "main" }],
    callId: "c",
    files: createSessionFiles().forAgent(),
    host: {},
    environment: {},
    outputDirectory: "/p/out",
    progress: () => undefined,
  };
}

const now = () => 5_000;

describe("TaskOutput", () => {
  test("gives what there is, how it is doing, metrics and agent [TSK-1]", async () => {
    const { source } = createSource("agent", [
      { id: "a1", agentId: "a1", metrics: { tokens: 12, toolUses: 3 } },
    ]);
    const outcome = await createTaskOutputTool({ sources: [source], now }).call(
      { task_id: "a1", block: false },
      context(),
    );
    expect(outcome.content).toBe(
      "Task a1 (agent): running, 5 s\nAgent: a1\nMetrics: tokens 12, toolUses 3\n\nOutput:\noutput of a1",
    );
  });

  test("waits for the end when it blocks [TSK-1]", async () => {
    const { source, finish } = createSource("shell", [{ id: "b1", exitCode: 0 }]);
    const pending = createTaskOutputTool({ sources: [source], now }).call({ task_id: "b1" }, context());
    finish("b1", "completed");
    expect((await pending).content).toContain("Task b1 (shell): completed, exit code 0, 9 s");
  });

  test("waits no longer than its timeout and says that the task still runs [TSK-1]", async () => {
    const { source } = createSource("shell", [{ id: "b1" }]);
    const tool = createTaskOutputTool({ sources: [source], now });
    const outcome = await tool.call({ task_id: "b1", block: true, timeout: 1 }, context());
    expect(outcome.content).toContain("It is still running after 1 ms of waiting.");
    expect(outcome.isError).toBeUndefined();
  });

  test("stops waiting when the run is aborted", async () => {
    const { source } = createSource("shell", [{ id: "b1" }]);
    const controller = new AbortController();
    const tool = createTaskOutputTool({ sources: [source], now });
    const pending = tool.call({ task_id: "b1", timeout: 600_000 }, context(controller.signal));
    controller.abort();
    expect((await pending).content).toContain("running");
  });

  test("does not wait for one that has ended", async () => {
    const { source } = createSource("shell", [
      { id: "b1", state: "failed", endedAt: 2_000, note: "Broken." },
    ]);
    const outcome = await createTaskOutputTool({ sources: [source], now }).call({ task_id: "b1" }, context());
    expect(outcome.content).toContain("failed, 2 s\nBroken.");
  });

  test("reads on from an offset, and says where it is [TSK-1]", async () => {
    const { source } = createSource("shell", [{ id: "b1" }]);
    const tool = createTaskOutputTool({ sources: [source], now });
    const read = async (offset: number) =>
      String((await tool.call({ task_id: "b1", block: false, offset }, context())).content).split("\n\n")[1];
    expect(await read(0)).toBe("Output (characters 1 to 6 of 13; continue with offset 6):\noutput");
    expect(await read(6)).toBe("Output (characters 7 to 12 of 13; continue with offset 12):\n of b1");
    expect(await read(20)).toBe("Output (nothing from character 13 on; there are 13):");
  });

  test("finds a task by its name as by its id [TSK-1]", async () => {
    const { source } = createSource("agent", [{ id: "a1" }]);
    const named = { ...source, find: (id: string) => source.find(id === "ada" ? "a1" : id) };
    const tool = createTaskOutputTool({ sources: [named], now });
    expect((await tool.call({ task_id: "ada", block: false }, context())).content).toContain("output of a1");
  });

  test("takes numbers and flags that a model wrote as text", () => {
    const tool = createTaskOutputTool({ sources: [], now });
    expect(tool.input?.safeParse({ task_id: "b", block: "false", timeout: "50" })).toEqual({
      success: true,
      data: { task_id: "b", block: false, timeout: 50 },
    });
  });
});

describe("an unknown id", () => {
  test("is an error that lists the known ones of all sources [TSK-3]", async () => {
    const shells = createSource("shell", [{ id: "b1", description: "Serve" }]).source;
    const agents = createSource("agent", [{ id: "a1", state: "completed", description: "Look" }]).source;
    const options = { sources: [shells, agents], now };
    for (const tool of [createTaskOutputTool(options), createTaskStopTool(options)]) {
      expect(await tool.call({ task_id: "zz" }, context())).toEqual({
        content:
          "There is no task zz. These are known:\n- b1 (shell, running): Serve\n- a1 (agent, completed): Look",
        isError: true,
      });
    }
  });

  test("is named as the first when nothing was started", async () => {
    const outcome = await createTaskStopTool({ sources: [] }).call({ task_id: "zz" }, context());
    expect(outcome.content).toContain("nothing was started");
  });
});

describe("TaskStop", () => {
  test.each([[{ task_id: "b1" }], [{ shell_id: "b1" }]])("stops by %j [TSK-2]", async (input) => {
    const { source } = createSource("shell", [{ id: "b1", command: "serve" }]);
    const outcome = await createTaskStopTool({ sources: [source] }).call(input, context());
    expect(source.find("b1")?.state).toBe("stopped");
    expect(outcome.data).toEqual({
      message: "Task b1 was stopped: Some work",
      task_id: "b1",
      task_type: "shell",
      command: "serve",
    });
  });

  test("of a task that has ended is no error and leaves it as it is [TSK-3]", async () => {
    const { source } = createSource("shell", [{ id: "b1", state: "completed" }]);
    const outcome = await createTaskStopTool({ sources: [source] }).call({ task_id: "b1" }, context());
    expect(outcome.isError).toBeUndefined();
    expect(outcome.content).toContain("had ended already (completed)");
    expect(source.find("b1")?.state).toBe("completed");
  });

  test("without an id reports what is missing", async () => {
    expect(await createTaskStopTool({ sources: [] }).call({}, context())).toMatchObject({ isError: true });
  });
});

describe("a subagent [NST-1, TSK-2]", () => {
  const path = ["main", "lead", "worker"].map((id) => ({ id, name: id }));
  const as = (depth: number): ToolContext => ({
    ...context(),
    agent: path[depth] ?? { id: "", name: "" },
    agentPath: path.slice(0, depth + 1),
  });
  const tasks = () =>
    createSource("agent", [
      { id: "lead", owner: "main" },
      { id: "sibling", owner: "main" },
      { id: "worker", owner: "lead" },
      { id: "shell", owner: "worker" },
      { id: "looped", owner: "looped" },
    ]);

  test.each([
    [0, ["lead", "sibling", "worker", "shell", "looped"]],
    [1, ["worker", "shell"]],
    [2, ["shell"]],
  ])("on level %i reads and stops what it and those below it have started", async (depth, reachable) => {
    for (const id of ["lead", "sibling", "worker", "shell", "looped"]) {
      const { source } = tasks();
      const options = { sources: [source], now };
      const read = await createTaskOutputTool(options).call({ task_id: id, block: false }, as(depth));
      const stopped = await createTaskStopTool(options).call({ task_id: id }, as(depth));
      const isReached = source.find(id)?.state === "stopped";
      expect({ id, isReached }).toEqual({ id, isReached: reachable.includes(id) });
      expect([read.isError === true, stopped.isError === true]).toEqual([!isReached, !isReached]);
    }
  });

  test("is not shown which other tasks there are", async () => {
    const { source } = tasks();
    const { content } = await createTaskStopTool({ sources: [source] }).call({ task_id: "no" }, as(1));
    expect(content).toContain("- worker");
    expect(content).not.toMatch(/sibling|- lead/);
  });
});

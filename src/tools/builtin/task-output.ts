import * as z from "zod";
import { isRecord } from "../../foundation/json-value.ts";
import type { TaskSource, TaskView } from "../task-source.ts";
import type { Tool } from "../tool.ts";
import { builtinTool, failed } from "./builtin-tool.ts";
import { describeTask, lookUpTask, recallTask } from "./task-lookup.ts";
import { optionalFlag, optionalNumber } from "./tolerant-input.ts";

export interface TaskToolOptions {
  readonly sources: readonly TaskSource[];
  /** The clock that the tasks' own times come from. */
  readonly now: () => number;
}

const input = z.object({
  task_id: z.string().min(1).describe("The id that was given when the task was started."),
  block: optionalFlag("Wait until the task has ended; true unless you say false."),
  timeout: optionalNumber("How long to wait at most, in milliseconds: 30000 unless given, at most 600000."),
});

/** Reads what a background task has written, and waits for its end where asked to. */
export function createTaskOutputTool({ sources, now }: TaskToolOptions): Tool {
  return builtinTool<z.infer<typeof input>>({
    name: "TaskOutput",
    description:
      "Reads what a background task (a shell or an agent) has written so far, and how it stands. With `block` it waits for the end, at most `timeout` milliseconds. Use block: false for a look in between.",
    effect: "coordinate",
    repeats: "pure",
    input,
    runsBeside: () => true,
    isPending,
    async call({ task_id, block = true, timeout = 30_000 }, { signal }) {
      const found = lookUpTask(sources, task_id);
      if (found.type === "unknown") {
        const recalled = await recallTask(sources, task_id);
        if (recalled === undefined) return failed(found.because);
        return {
          content: compose(recalled.task, { ...recalled, now: now(), stillRuns: "" }),
          data: recalled,
        };
      }
      const { source } = found;
      const limitMs = Math.min(600_000, Math.max(0, timeout));
      // Also for one that has just ended: it is still being recorded, and its parent has not been told.
      if (block) await waitForEnd(source.ended(task_id), { limitMs, signal });
      const task = source.find(task_id) ?? found.task;
      const output = await source.output(task_id);
      const stillRuns =
        block && task.state === "running" ? `It is still running after ${limitMs} ms of waiting.` : "";
      return { content: compose(task, { now: now(), output, stillRuns }), data: { task, output } };
    },
  });
}

/** `data` as `call` gives it back. */
function isPending(data: unknown): boolean {
  return isRecord(data) && isRecord(data.task) && data.task.state === "running";
}

function compose(
  task: TaskView,
  { now, output, stillRuns }: { readonly now: number; readonly output: string; readonly stillRuns: string },
): string {
  const metrics = Object.entries(task.metrics ?? {}).map(([name, value]) => `${name} ${value}`);
  const lines = [
    describeTask(task, now),
    stillRuns,
    task.note ?? "",
    task.agentId === undefined ? "" : `Agent: ${task.agentId}`,
    metrics.length === 0 ? "" : `Metrics: ${metrics.join(", ")}`,
    task.outputFile === undefined ? "" : `File: ${task.outputFile}`,
  ];
  const text = output.trimEnd() === "" ? "It has written nothing yet." : `Output:\n${output.trimEnd()}`;
  return [...lines.filter((line) => line !== ""), "", text].join("\n");
}

async function waitForEnd(
  ended: Promise<void>,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const given = Promise.withResolvers<void>();
  const timer = setTimeout(given.resolve, limitMs);
  const onAbort = () => given.resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await Promise.race([ended, given.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

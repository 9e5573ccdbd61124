import * as z from "zod";
import { isRecord } from "../../foundation/json-record.ts";
import type { TaskSource, TaskView } from "../task-source.ts";
import { describePage, pageOf, type TextPage } from "../text-page.ts";
import type { Tool, ToolOutcome } from "../tool.ts";
import { builtinTool, failed, optionalFlag, optionalNumber } from "./builtin-tool.ts";

export interface TaskToolOptions {
  readonly sources: readonly TaskSource[];
  /** The clock that the tasks' own times come from. */
  readonly now: () => number;
}

const input = z.object({
  task_id: z.string().min(1).describe("The id that was given when the task was started."),
  block: optionalFlag("Wait until the task has ended; true unless you say false or give an offset."),
  timeout: optionalNumber("How long to wait at most, in milliseconds: 30000 unless given, at most 600000."),
  offset: optionalNumber("Read on from this character of a long output, as an earlier answer says."),
});

/** Reads what a background task has written, and waits for its end where asked to. */
export function createTaskOutputTool({ sources, now }: TaskToolOptions): Tool {
  return builtinTool<z.infer<typeof input>>({
    name: "TaskOutput",
    description:
      "Reads what a background task (a shell or an agent) has written so far, and how it is doing. With `block` it waits for the end, at most `timeout` milliseconds. Use block: false for a look in between. What is too long for one answer is read on with `offset`.",
    input,
    isPending,
    async call({ task_id, offset, block = offset === undefined, timeout = 30_000 }, { signal }) {
      const found = lookUpTask(sources, task_id);
      if (found.type === "unknown") {
        const recalled = await recallTask(sources, task_id);
        if (recalled === undefined) return failed(found.reason);
        return outcomeOf(recalled.task, pageOf(recalled.text, offset), { now: now(), stillRuns: "" });
      }
      const { source } = found;
      // It may have been asked for by its name.
      const { id } = found.task;
      const limitMs = Math.min(600_000, Math.max(0, timeout));
      // Also for one that has just ended: it is still being recorded, and its parent has not been notified.
      if (block) await waitForEnd(source.ended(id), { limitMs, signal });
      const task = source.find(id) ?? found.task;
      const output =
        offset === undefined ? { text: await source.output(id), offset: 0 } : await source.page(id, offset);
      const stillRuns =
        block && task.state === "running" ? `It is still running after ${limitMs} ms of waiting.` : "";
      return outcomeOf(task, output, { now: now(), stillRuns });
    },
  });
}

/** `data` as `call` gives it back. */
function isPending(data: unknown): boolean {
  return isRecord(data) && isRecord(data.task) && data.task.state === "running";
}

interface Moment {
  readonly now: number;
  readonly stillRuns: string;
}

function outcomeOf(task: TaskView, page: TextPage, moment: Moment): ToolOutcome {
  return { content: compose(task, page, moment), data: { task, output: page.text } };
}

function compose(task: TaskView, page: TextPage, { now, stillRuns }: Moment): string {
  const metrics = Object.entries(task.metrics ?? {}).map(([name, value]) => `${name} ${value}`);
  const lines = [
    describeTask(task, now),
    stillRuns,
    task.note ?? "",
    task.agentId === undefined ? "" : `Agent: ${task.agentId}`,
    metrics.length === 0 ? "" : `Metrics: ${metrics.join(", ")}`,
    task.outputFile === undefined ? "" : `File: ${task.outputFile}`,
  ];
  const where = describePage(page);
  const heading = where === "" ? "Output:" : `Output (${where}):`;
  const isEmpty = page.text.trimEnd() === "" && where === "";
  const text = isEmpty ? "It has written nothing yet." : `${heading}\n${page.text}`.trimEnd();
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

type FoundTask =
  | { readonly type: "found"; readonly source: TaskSource; readonly task: TaskView }
  | { readonly type: "unknown"; readonly reason: string };

export function lookUpTask(sources: readonly TaskSource[], id: string): FoundTask {
  for (const source of sources) {
    const task = source.find(id);
    if (task !== undefined) return { type: "found", source, task };
  }
  return { type: "unknown", reason: unknownText(sources, id) };
}

/** Those that ended long ago are asked for only here, because that takes reading files. */
async function recallTask(
  sources: readonly TaskSource[],
  id: string,
): Promise<{ readonly task: TaskView; readonly text: string } | undefined> {
  for (const source of sources) {
    const recalled = await source.recall?.(id);
    if (recalled !== undefined) return recalled;
  }
  return undefined;
}

function unknownText(sources: readonly TaskSource[], id: string): string {
  const known = sources.flatMap((source) => source.list()).slice(-maxListed);
  if (known.length === 0) return `There is no task ${id}; nothing was started in the background.`;
  const lines = known.map((task) => `- ${task.id} (${task.kind}, ${task.state}): ${task.description}`);
  return [`There is no task ${id}. These are known:`, ...lines].join("\n");
}

const maxListed = 40;

/** How a task is, as one line. */
function describeTask(task: TaskView, now: number): string {
  const seconds = Math.max(0, Math.round(((task.endedAt ?? now) - task.startedAt) / 1_000));
  const code = task.exitCode === undefined ? "" : `, exit code ${task.exitCode}`;
  return `Task ${task.id} (${task.kind}): ${task.state}${code}, ${seconds} s`;
}

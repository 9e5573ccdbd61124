import type { TaskSource, TaskView } from "../task-source.ts";

export type FoundTask =
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
export async function recallTask(
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
export function describeTask(task: TaskView, now: number): string {
  const seconds = Math.max(0, Math.round(((task.endedAt ?? now) - task.startedAt) / 1_000));
  const code = task.exitCode === undefined ? "" : `, exit code ${task.exitCode}`;
  return `Task ${task.id} (${task.kind}): ${task.state}${code}, ${seconds} s`;
}

import * as z from "zod";
import type { Tool } from "../tool.ts";
import { builtinTool, failed } from "./builtin-tool.ts";
import { lookUpTask } from "./task-lookup.ts";
import type { TaskToolOptions } from "./task-output.ts";
import { optionalText } from "./tolerant-input.ts";

const input = z.object({
  task_id: optionalText("The id of the task to stop."),
  shell_id: optionalText("The old name of task_id."),
});

/** Ends a background task with all its processes; what it has written stays readable. */
export function createTaskStopTool({ sources }: Pick<TaskToolOptions, "sources">): Tool {
  return builtinTool<z.infer<typeof input>>({
    name: "TaskStop",
    description:
      "Stops a background task (a shell or an agent) with everything it has started. What it wrote stays readable with TaskOutput.",
    effect: "coordinate",
    input,
    async call({ task_id, shell_id }) {
      const asked = task_id ?? shell_id;
      if (asked === undefined) return failed("task_id is missing; give the id of the task to stop.");
      const found = lookUpTask(sources, asked);
      if (found.type === "unknown") return failed(found.reason);
      // It may have been asked for by its name.
      const { id } = found.task;
      const wasRunning = found.task.state === "running";
      if (wasRunning) await found.source.stop(id);
      const task = found.source.find(id) ?? found.task;
      const message = wasRunning
        ? `Task ${id} was stopped: ${task.description}`
        : `Task ${id} had ended already (${task.state}): ${task.description}`;
      const command = task.command === undefined ? {} : { command: task.command };
      return { content: message, data: { message, task_id: id, task_type: task.kind, ...command } };
    },
  });
}

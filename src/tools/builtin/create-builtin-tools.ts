import * as z from "zod";
import type { Shells } from "../command/shells.ts";
import type { TaskSource } from "../task-source.ts";
import type { Tool } from "../tool.ts";
import { builtinTool, failed } from "./builtin-tool.ts";
import { createAskUserQuestionTool } from "./create-ask-user-question-tool.ts";
import { type BashToolOptions, createBashTool } from "./create-bash-tool.ts";
import { createEditTool } from "./create-edit-tool.ts";
import { createGlobTool } from "./create-glob-tool.ts";
import { createGrepTool } from "./create-grep-tool.ts";
import { createNotebookEditTool } from "./create-notebook-edit-tool.ts";
import { createReadTool } from "./create-read-tool.ts";
import { createTaskOutputTool, lookUpTask, type TaskToolOptions } from "./create-task-output-tool.ts";
import { createTodoStore, createTodoWriteTool, type TodoStore } from "./create-todo-write-tool.ts";
import { createWriteTool } from "./create-write-tool.ts";
import { optionalText } from "./optional-text.ts";
import type { ShellDirectories } from "./shell-directories.ts";
import { createWebFetchTool, type WebFetchOptions } from "./web/create-web-fetch-tool.ts";

/** What the built-in tools of a session share. */
export interface BuiltinToolsOptions {
  readonly shells: Shells;
  readonly directories: ShellDirectories;
  /** Milliseconds that only ever grow; the clock of the shells too. */
  readonly now: () => number;
  readonly todos?: TodoStore;
  /** Where TaskOutput and TaskStop look besides the shells. */
  readonly taskSources?: readonly TaskSource[];
  readonly bash?: Omit<BashToolOptions, "shells" | "directories" | "now">;
  readonly webFetch?: Omit<WebFetchOptions, "now">;
}

/** All built-in tools, by name, so that a model always sees them in the same order. */
export function createBuiltinTools(options: BuiltinToolsOptions): readonly Tool[] {
  const { shells, directories, now, todos = createTodoStore() } = options;
  const sources = [shells, ...(options.taskSources ?? [])];
  return [
    createAskUserQuestionTool(),
    createBashTool({ shells, directories, now, ...options.bash }),
    createEditTool(),
    createGlobTool(),
    createGrepTool(),
    createNotebookEditTool(),
    createReadTool(),
    createTaskOutputTool({ sources, now }),
    createTaskStopTool({ sources }),
    createTodoWriteTool({ todos }),
    createWebFetchTool({ now, ...options.webFetch }),
    createWriteTool(),
  ];
}

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

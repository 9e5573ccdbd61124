import type { Shells } from "../shells.ts";
import type { TaskSource } from "../task-source.ts";
import type { Tool } from "../tool.ts";
import { createAskUserQuestionTool } from "./ask-user-question.ts";
import { type BashToolOptions, createBashTool } from "./bash.ts";
import { createEditTool } from "./edit.ts";
import { createGlobTool } from "./glob.ts";
import { createGrepTool } from "./grep.ts";
import { createNotebookEditTool } from "./notebook-edit.ts";
import { createReadTool } from "./read.ts";
import type { ShellDirectories } from "./shell-directories.ts";
import { createTaskOutputTool } from "./task-output.ts";
import { createTaskStopTool } from "./task-stop.ts";
import { createTodoStore, createTodoWriteTool, type TodoStore } from "./todo-write.ts";
import { createWebFetchTool, type WebFetchOptions } from "./web-fetch.ts";
import { createWriteTool } from "./write.ts";

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

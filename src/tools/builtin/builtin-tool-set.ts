import { createAskUserQuestionTool } from "./ask-user-question.ts";
import { createBashTool } from "./bash.ts";
import { createEditTool } from "./edit.ts";
import { createGlobTool } from "./glob.ts";
import { createGrepTool } from "./grep.ts";
import { createNotebookEditTool } from "./notebook-edit.ts";
import { createReadTool } from "./read.ts";
import { createTaskOutputTool } from "./task-output.ts";
import { createTaskStopTool } from "./task-stop.ts";
import { createTodoStore, createTodoWriteTool } from "./todo-write.ts";
import { createWebFetchTool } from "./web-fetch.ts";
import { createWriteTool } from "./write.ts";
export function createBuiltinTools(o:any){return [createAskUserQuestionTool(),createBashTool(o),createEditTool(),createGlobTool(),createGrepTool(),createNotebookEditTool(),createReadTool(),createTaskOutputTool({sources:[o.shells],now:o.now}),createTaskStopTool({sources:[o.shells]}),createTodoWriteTool({todos:createTodoStore()}),createWebFetchTool(o),createWriteTool()]}

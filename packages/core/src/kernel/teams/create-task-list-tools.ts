import { join } from "node:path";
import { escapeControlTags, escapeName } from "@retinue/base/foundation/escape-control-tags.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import { type Board, type BoardTask, openBlockers, sortedTasks } from "../../teams/board.ts";
import {
  type ApproveTask,
  type BoardStore,
  createBoardStore,
  type TaskDraft,
} from "../../teams/board-store.ts";
import * as t from "../../tools/input-type.ts";
import { defineTool, type Tool, type ToolOutcome } from "../../tools/tool.ts";
import type { Session } from "../session.ts";

export interface TaskListOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The session whose list it is, once it is open. */
  readonly session: () => Pick<Session, "plan" | "discovered"> | undefined;
  /** Hooks that may refuse a new task or a completed one. */
  readonly approve: (event: "TaskCreated" | "TaskCompleted", task: BoardTask) => ReturnType<ApproveTask>;
}

interface TaskListParts extends Pick<TaskListOptions, "approve"> {
  readonly board: () => BoardStore;
}

/** TaskCreate, TaskUpdate, TaskList and TaskGet: the list of steps of a session without a team; none where the environment turns it off. */
export function createTaskListTools({ environment, session, approve }: TaskListOptions): readonly Tool[] {
  const { tasksEnabled, taskListId } = readEnvironment(environment).options;
  if (tasksEnabled === false) return [];
  const parts: TaskListParts = {
    approve,
    board() {
      const open = session();
      if (open === undefined) throw new RetinueError("session-closed", "There is no session.");
      return createBoardStore(join(open.discovered.paths.tasks, taskListId ?? open.plan.sessionId));
    },
  };
  return [createTool(parts), updateTool(parts), listTool(parts), getTool(parts)];
}

const text = (about: string) => t.string().optional().describe(about);
const ids = (about: string) => t.array(t.coerce.string()).optional().describe(about);
const metadata = t.record(t.unknown()).optional().describe("Anything else worth keeping.");
const taskId = t.coerce.string().describe("The id of the task.");

const createInput = t.object({
  subject: t.string().min(1).describe("The task in a few words, as an order."),
  description: t.string().default("").describe("What is to be done."),
  activeForm: text("What is shown while it is worked on."),
  metadata,
});

function createTool({ board, approve }: TaskListParts): Tool {
  return defineTool<t.Infer<typeof createInput>>({
    name: "TaskCreate",
    description:
      "Adds a task to the list of this session. Use it for work of several steps, and keep the list up to date with TaskUpdate.",
    effect: "coordinate",
    input: createInput,
    async call(draft) {
      // Absent fields stay absent: the schema gives undefined for none of them.
      const created = await board().create(draft as TaskDraft, (task) => approve("TaskCreated", task));
      if (created.type === "refused") return failed(`The task was not created: ${created.reason}`);
      const { id, subject, description } = created.task;
      return {
        content: `Task #${id} created: ${escapeName(subject)}`,
        data: { task: { id, subject, description } },
      };
    },
  });
}

const updateInput = t.object({
  taskId,
  status: t
    .oneOf(["pending", "in_progress", "completed", "deleted"])
    .optional()
    .describe("in_progress when you begin, completed when it is done."),
  subject: text("A new subject."),
  description: text("A new description."),
  activeForm: text("What is shown while it is worked on."),
  owner: text("Who does it; empty for no one."),
  addBlocks: ids("Ids of tasks that wait for this one."),
  addBlockedBy: ids("Ids of tasks that this one waits for."),
  metadata,
});

function updateTool({ board, approve }: TaskListParts): Tool {
  return defineTool<t.Infer<typeof updateInput>>({
    name: "TaskUpdate",
    description: "Changes a task of the list: its status, its text, or what it waits for.",
    effect: "coordinate",
    input: updateInput,
    async call({ taskId: id, ...given }) {
      const outcome = await board().change(id, given as JsonRecord, {
        by: { name: "main", isLead: true },
        approve: (task) => approve("TaskCompleted", task),
      });
      if (outcome.type === "refused") return failed(`Task #${id} was not changed: ${outcome.reason}`);
      const { before, task, deleted } = outcome;
      const updatedFields = Object.keys(given);
      const to = deleted ? "deleted" : task.status;
      return {
        content: `Updated task #${id}: ${updatedFields.join(", ")}`,
        data: {
          success: true,
          taskId: id,
          updatedFields,
          ...(to === before.status ? {} : { statusChange: { from: before.status, to } }),
        },
      };
    },
  });
}

function listTool({ board }: TaskListParts): Tool {
  return defineTool<Record<string, never>>({
    name: "TaskList",
    description: "Shows the list of this session: every task with its status and what it waits for.",
    effect: "coordinate",
    input: t.object({}),
    async call() {
      const tasks = board().read();
      const shown = sortedTasks(tasks).map((task) => {
        const { id, subject, status, owner } = task;
        const blockedBy = openBlockers(task, tasks);
        return { id, subject, status, owner, blockedBy };
      });
      const lines = sortedTasks(tasks).map((task) => lineOf(task, tasks));
      return {
        content: lines.length === 0 ? "The list has no tasks." : lines.join("\n"),
        data: { tasks: shown },
      };
    },
  });
}

const getInput = t.object({ taskId });

function getTool({ board }: TaskListParts): Tool {
  return defineTool<t.Infer<typeof getInput>>({
    name: "TaskGet",
    description: "Shows one task of the list in full.",
    effect: "coordinate",
    input: getInput,
    async call({ taskId: id }) {
      const tasks = board().read();
      const task = tasks.get(id);
      if (task === undefined) return failed(`There is no task #${id} in the list.`);
      const { subject, description, status, blocks } = task;
      const shown = { id, subject, description, status, blocks, blockedBy: openBlockers(task, tasks) };
      return {
        content: `${lineOf(task, tasks)}\n\n${escapeControlTags(description)}`.trimEnd(),
        data: { task: shown },
      };
    },
  });
}

function lineOf(task: BoardTask, board: Board): string {
  const open = openBlockers(task, board);
  const blocked = open.length === 0 ? "" : ` [blocked by ${open.join(", ")}]`;
  return `#${task.id} [${task.status}] ${escapeName(task.subject)}${blocked}`;
}

function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true };
}

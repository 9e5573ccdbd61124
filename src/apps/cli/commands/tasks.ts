import { type FoundTask, findTasks } from "../../../tasks/find-tasks.ts";
import type { CommandContext } from "../session-options.ts";
import { createPaint } from "../views/colour.ts";
import { describeAge } from "../views/describe-age.ts";
import { type Column, renderTable } from "../views/table-view.ts";
import { stripControlCharacters } from "../views/text-width.ts";
import { transcriptsOf } from "./find-named-task.ts";
import { tasksInterrupted } from "./tasks-interrupted.ts";

export interface TasksOptions {
  readonly all?: boolean;
  readonly interrupted?: boolean;
  readonly json?: boolean;
}

/** Besides those that run. */
const usuallyShown = 20;

/** `retinue tasks`: the child agents of this project's sessions, whoever runs them. */
export async function tasks({ host }: CommandContext, options: TasksOptions): Promise<number> {
  const { stdout } = host;
  if (options.interrupted === true) return tasksInterrupted(host, { json: options.json === true });
  const found = await findTasks(transcriptsOf(host), options.all === true ? {} : { limit: usuallyShown });
  if (options.json === true) {
    stdout.write(`${JSON.stringify({ version: 1, tasks: found }, undefined, 2)}\n`);
    return 0;
  }
  if (found.length === 0) {
    host.stderr.write("No session of this folder has started an agent.\n");
    return 0;
  }
  const now = Date.now();
  const paint = createPaint(stdout.isColourAllowed);
  const rows = found.map((task) => rowOf(task, now).map(stripControlCharacters));
  stdout.write(renderTable({ columns, rows, width: stdout.columns, paint }));
  return 0;
}

const columns: readonly Column[] = [
  { heading: "ID", atLeast: 17, style: "name" },
  { heading: "TYPE", atLeast: 8, atMost: 20 },
  { heading: "STATE", atLeast: 11 },
  { heading: "AGE", atLeast: 4 },
  { heading: "TOKENS", atLeast: 6 },
  { heading: "LAST SIGN", atLeast: 9 },
  { heading: "DESCRIPTION", atLeast: 16, elseBelow: 30, style: "dim" },
];

function rowOf(task: FoundTask, now: number): readonly string[] {
  const age = task.startedAt === undefined ? "" : describeAge(now - task.startedAt);
  return [
    task.id,
    task.agentType,
    task.queuePosition === undefined ? task.state : `queued ${task.queuePosition}`,
    age,
    String(task.tokens),
    `${describeAge(now - task.lastSignAt)} ago`,
    task.description,
  ];
}

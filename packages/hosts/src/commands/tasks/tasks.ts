import type { InFlightCall } from "@retinue/core/conversation/interrupted-agent.ts";
import {
  describeInFlight,
  describeTaskDamage,
  type FoundTask,
  type Interrupted,
  type ListedTask,
  type WaitingSession,
} from "@retinue/core/kernel/project/project-tasks.ts";
import { behindParents } from "../../shared/behind-parents.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { untilText } from "../../shared/debug-line.ts";
import { formatCost } from "../../shared/format.ts";
import { openTasks } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { describeAge } from "../views/describe-age.ts";
import { type Column, renderTable } from "../views/render-table.ts";

export interface TasksOptions {
  readonly all?: boolean;
  readonly interrupted?: boolean;
  readonly json?: boolean;
}

/** Besides those that run. */
const usuallyShown = 20;

/** `retinue tasks`: the child agents of this project's sessions, no matter who runs them. */
export async function tasks({ host }: CommandContext, options: TasksOptions): Promise<number> {
  const { stdout } = host;
  if (options.interrupted === true) return tasksInterrupted(host, { json: options.json === true });
  const project = openTasks(host);
  const found = await project.list(options.all === true ? {} : { limit: usuallyShown });
  const waiting = await project.waiting();
  if (options.json === true) {
    const whole = { version: 1, tasks: found.map(asJson), ...(waiting.length === 0 ? {} : { waiting }) };
    stdout.write(`${JSON.stringify(whole, undefined, 2)}\n`);
    return 0;
  }
  if (found.length === 0 && waiting.length === 0) {
    host.stderr.write("No session in this folder has started an agent.\n");
    return 0;
  }
  const now = Date.now();
  for (const one of waiting) stdout.write(`${waitingLine(one)}\n`);
  if (found.length === 0) return 0;
  const paint = createPaint(stdout.isColourAllowed);
  const rows = behindParents(found).map((task) => rowOf(task, now).map(stripControlCharacters));
  stdout.write(renderTable({ columns, rows, width: stdout.columns, paint }));
  return 0;
}

/** A main agent is in no table of children. */
function waitingLine({ sessionId, title, provider, until, isLive }: WaitingSession): string {
  const how = isLive ? "" : "; its process ended: `retinue resume --waiting` continues it";
  return stripControlCharacters(
    `session ${sessionId}  ${title}  waiting-for-quota of ${provider} ${untilText(until)}${how}`,
  );
}

function asJson({ activity: _activity, ...task }: ListedTask): FoundTask {
  return task;
}

const columns: readonly Column[] = [
  { heading: "ID", atLeast: 17, style: "name" },
  { heading: "TYPE", atLeast: 8, atMost: 20 },
  { heading: "STATE", atLeast: 11, styleOf: styleOfState },
  { heading: "AGE", atLeast: 4 },
  { heading: "TOKENS", atLeast: 6 },
  { heading: "COST", atLeast: 5 },
  { heading: "LAST ACTIVITY", atLeast: 9, atMost: 28 },
  { heading: "DESCRIPTION", atLeast: 16, elseBelow: 30, style: "dim" },
];

function styleOfState(text: string): "good" | "warning" | "error" | "note" | undefined {
  if (text.startsWith("running")) return "good";
  if (text.startsWith("queued") || text.startsWith("waiting")) return "note";
  if (text === "failed") return "error";
  return text === "completed" ? undefined : "warning";
}

function rowOf(task: ListedTask, now: number): readonly string[] {
  const age = task.startedAt === undefined ? "" : describeAge(now - task.startedAt);
  return [
    task.id,
    `${"  ".repeat((task.depth ?? 1) - 1)}${task.agentType}`,
    stateOf(task),
    age,
    String(task.tokens),
    task.costUsd === undefined ? "" : formatCost(task.costUsd),
    lastActivity(task, now),
    task.description,
  ];
}

/** What a running agent does now; else when it last gave a sign. */
function lastActivity({ activity, lastSignAt, waitingForQuota }: ListedTask, now: number): string {
  if (waitingForQuota !== undefined) return `${waitingForQuota.provider} ${untilText(waitingForQuota.until)}`;
  if (activity !== undefined) return activity;
  return `${describeAge(now - lastSignAt)} ago`;
}

function stateOf({ state, queuePosition, runsOn, waitingForQuota }: FoundTask): string {
  if (queuePosition !== undefined) return `queued ${queuePosition}`;
  if (waitingForQuota !== undefined && state === "running") return "waiting-for-quota";
  return runsOn === undefined ? state : `${state} on ${runsOn}`;
}

/** `retinue tasks --interrupted`: what died with its process, what was in flight, and how to resume it. */
async function tasksInterrupted(host: CliHost, { json }: { readonly json: boolean }): Promise<number> {
  const { stdout, stderr } = host;
  const found = await openTasks(host).interrupted();
  if (json) {
    const { agents, sessions } = found;
    stdout.write(`${JSON.stringify({ version: 1, tasks: agents, sessions }, undefined, 2)}\n`);
    return 0;
  }
  const parts = describe(found, createPaint(stdout.isColourAllowed), Date.now());
  if (parts.length === 0) stderr.write("Nothing in this folder was interrupted.\n");
  for (const part of parts) stdout.write(`${part}\n`);
  return 0;
}

function describe(
  { agents, sessions }: Interrupted,
  paint: ReturnType<typeof createPaint>,
  now: number,
): readonly string[] {
  const age = (at: number): string => paint.dim(`${describeAge(now - at)} ago`);
  return [
    ...agents.flatMap(
      ({ id, agentType, description, inFlight = [], canResume, lastSignAt, damage, parentId }) => [
        `${paint.name(id)}  ${stripControlCharacters(agentType)}  ${stripControlCharacters(description)}  ${age(lastSignAt)}`,
        ...inFlightLines(inFlight),
        ...damageLines({ id, damage }),
        resumeLine({ id, canResume, parentId }),
      ],
    ),
    ...sessions.flatMap(({ id, title, inFlight, modified }) => [
      `session ${paint.name(id)}  ${stripControlCharacters(title)}  ${age(modified)}`,
      ...inFlightLines(inFlight),
      `  resume: retinue -p --resume ${id} "Continue."`,
    ]),
  ];
}

/** One that a subagent has started is resumed by that one. */
function resumeLine({ id, canResume, parentId }: Pick<FoundTask, "id" | "canResume" | "parentId">): string {
  if (canResume !== true) return "  its task was not written down";
  return parentId === undefined
    ? `  resume: retinue resume ${id}`
    : `  resumed by ${parentId}, which started it`;
}

function damageLines(task: Pick<FoundTask, "id" | "damage">): readonly string[] {
  const text = describeTaskDamage(task);
  return text === undefined ? [] : [`  ${text}`];
}

function inFlightLines(calls: readonly InFlightCall[]): readonly string[] {
  return calls.map((call) => `  in flight: ${stripControlCharacters(describeInFlight(call))}`);
}

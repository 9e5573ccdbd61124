import { isRecord } from "../../foundation/json-record.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { isSessionId } from "../../journal/session-files.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import { readChildPlan } from "../../planning/read-child-plan.ts";
import type { SessionOptions } from "../../runtime/options/runtime-options.ts";
import type { JsonValue } from "../store.ts";
import { readWorkspacePlan, type WorkspacePlan } from "../workspace/workspace-plan.ts";

/** The options of a session that are plain data and mean the same on every worker. */
const optionNames = [
  "agent",
  "model",
  "effort",
  "permissionMode",
  "skipPermissions",
  "tools",
  "allowedTools",
  "disallowedTools",
  "systemPrompt",
  "appendSystemPrompt",
  "maxTurns",
  "maxBudgetUsd",
  "limits",
  "slashCommands",
] as const satisfies readonly (keyof SessionOptions)[];

export type TravellingOptions = Pick<SessionOptions, (typeof optionNames)[number]>;

/** What a worker needs to know to run a session: plain JSON without secrets. Keys come from the worker's environment. */
export interface SessionPlan {
  readonly type: "session";
  readonly sessionId: string;
  readonly prompt: string;
  readonly options: TravellingOptions;
  /** Definitions that were given with the request instead of in files of the workspace, keyed by name as in `--agents`. */
  readonly agents?: JsonValue;
  readonly workspace: WorkspacePlan;
}

/** The plan of a child agent, complete as `retinue plan --json` writes it. */
export interface PlannedChild {
  readonly type: "plan";
  /** A session of its own for its files, so that it meets no other agent of the session that it was planned in. */
  readonly sessionId: string;
  readonly plan: ChildPlan;
  readonly workspace: WorkspacePlan;
}

/** Takes what can travel, and refuses what was asked for and cannot: it would silently not hold elsewhere. */
export function toTravellingOptions(options: SessionOptions): TravellingOptions {
  const known: readonly string[] = optionNames;
  const given = Object.entries(options).filter(
    ([name, value]) => value !== undefined && name !== "sessionId",
  );
  const stray = given.find(([name, value]) => !known.includes(name) && value !== false);
  if (stray !== undefined)
    throw new RetinueError("not-portable", `The option ${stray[0]} cannot be carried out by a worker.`, {
      advice: "Leave it out, or run the agent in this process, without a store.",
    });
  return Object.fromEntries(given.filter(([name]) => known.includes(name)));
}

/** Reads a plan from the log; a worker of another version may have written it. */
export function readTravellingPlan(value: JsonValue): SessionPlan | PlannedChild {
  if (!isRecord(value)) throw unreadable("it is not an object");
  const { type, sessionId, workspace } = value;
  if (typeof sessionId !== "string" || !isSessionId(sessionId))
    throw unreadable("its session id is not a UUID");
  if (type === "session") return readSessionPlan(value, sessionId);
  if (type !== "plan") throw unreadable("it is neither of a session nor of a child");
  return { type, sessionId, plan: checkChildPlan(value["plan"]), workspace: readWorkspacePlan(workspace) };
}

/** Refuses what is not a complete plan of a child, with the field that is wrong. */
export function checkChildPlan(value: unknown): ChildPlan {
  const reading = readChildPlan(value);
  if (reading.type === "plan") return reading.plan;
  const { at, expected, found } = reading;
  throw unreadable(`${at === "" ? "it" : `\`${at}\``} must be ${expected}, but it is ${found}`);
}

function readSessionPlan(value: Readonly<Record<string, unknown>>, sessionId: string): SessionPlan {
  const { prompt, options, workspace, agents } = value;
  if (typeof prompt !== "string") throw unreadable("it has no prompt");
  if (!isRecord(options)) throw unreadable("its options are not an object");
  const known: readonly string[] = optionNames;
  const unknown = Object.keys(options).filter((name) => !known.includes(name));
  // An option that this worker does not recognize may be one that forbids something.
  if (unknown.length > 0) throw unreadable(`this version has no options ${unknown.join(", ")}`);
  return {
    type: "session",
    sessionId,
    prompt,
    // The values are checked where a session is opened, as those of every program are.
    options: options as TravellingOptions,
    ...(agents === undefined ? {} : { agents: agents as JsonValue }),
    workspace: readWorkspacePlan(workspace),
  };
}

function unreadable(reason: string): RetinueError {
  return new RetinueError("unreadable-plan", `The plan of this agent cannot be carried out: ${reason}.`, {
    advice: "Update this worker to the version that planned the agent.",
  });
}

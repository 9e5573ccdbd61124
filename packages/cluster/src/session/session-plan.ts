import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { readSessionAgents } from "@retinue/config/agents/read-definition-object.ts";
import { decidingKeys } from "@retinue/core/journal/session-choices.ts";
import { isRunId, isSessionId } from "@retinue/core/journal/session-files.ts";
import { outputForm } from "@retinue/core/kernel/options/read-output-schema.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { AgentPlan, ChildPlan } from "@retinue/core/planning/agent-plan.ts";
import { readAgentPlan } from "@retinue/core/planning/read-agent-plan.ts";
import type { JsonValue } from "../store.ts";
import { readWorkspacePlan, type WorkspacePlan } from "../workspace/workspace-plan.ts";

/** The options of a session that are plain data and mean the same on every worker. */
const optionNames = [
  "agent",
  "model",
  ...decidingKeys,
  "appendSubagentSystemPrompt",
  "maxBudgetUsd",
  "limits",
  "slashCommands",
  "output",
] as const satisfies readonly (keyof SessionOptions)[];

/** What the first form of a session's plan did not have. */
const laterFields = ["output", "appendSubagentSystemPrompt", "approvals", "plan"];

/** Workers that know these fields have this. The next field that an earlier worker must not pass over gets the next number. */
export const planFormat = "plan-format:2";
/** Workers that run scripts of workflows, and their steps with a form for the result. */
export const workflowFormat = "plan-format:3";

/** What a worker must know to carry out a session, so that one of an earlier version leaves it to others. */
export function formatNeeds(plan: SessionPlan): readonly string[] {
  const given = { ...defined(plan.options), ...defined(plan) };
  const isLater = laterFields.some((name) => name in given);
  return [...(isLater ? [planFormat] : []), ...(plan.workflow === undefined ? [] : [workflowFormat])];
}

export type TravellingOptions = Pick<SessionOptions, (typeof optionNames)[number]>;

/** What a worker needs to know to run a session: plain JSON without secrets. Keys come from the worker's environment. */
export interface SessionPlan {
  readonly type: "session";
  readonly sessionId: string;
  readonly prompt: string;
  readonly options: TravellingOptions;
  /** What was decided for the main agent where the session was started; absent: the worker decides it. */
  readonly plan?: AgentPlan;
  /** Definitions that were given with the request instead of in files of the workspace, keyed by name as in `--agents`. */
  readonly agents?: JsonValue;
  /** Its children are agents of the store, which any worker can carry out; otherwise they run with it. */
  readonly remoteChildren?: boolean;
  /** Its starter wants to read the answers while they are written. */
  readonly partialMessages?: boolean;
  /** `refuse`: what rules leave open is refused. Absent: it waits for a person. */
  readonly approvals?: "refuse";
  /** It runs this script in the place of a conversation. */
  readonly workflow?: TravellingWorkflow;
  readonly workspace: WorkspacePlan;
}

/** A workflow as a worker can begin it. */
export interface TravellingWorkflow {
  readonly runId: string;
  readonly script: string;
  /** Absent means undefined. */
  readonly args?: JsonValue;
  /** An earlier run of the store: the agent that it was. Its finished steps are taken. */
  readonly continues?: string;
}

/** The plan of a child agent, complete as `retinue plan --json` writes it. */
export interface PlannedChild {
  readonly type: "plan";
  /** A session of its own for its files, so that it meets no other agent of the session that it was planned in. */
  readonly sessionId: string;
  readonly plan: ChildPlan;
  /** The form of its result, as a JSON Schema. */
  readonly output?: Readonly<Record<string, unknown>>;
  readonly workspace: WorkspacePlan;
}

/** Takes what can travel, and refuses what was asked for and cannot: it would silently not hold elsewhere. */
export function toTravellingOptions(options: SessionOptions): TravellingOptions {
  const known: readonly string[] = optionNames;
  const given = Object.entries(options).filter(
    ([name, value]) => value !== undefined && name !== "sessionId",
  );
  const stray = given.find(([name, value]) => !known.includes(name) && value !== false);
  if (stray !== undefined) throw notPortable(`The option ${stray[0]}`);
  const { output, model, tools } = options;
  if (model !== undefined && typeof model !== "string") throw notPortable("A model of the program");
  const isList = tools === undefined || Array.isArray(tools);
  if (!isList || tools?.some((tool: unknown) => typeof tool !== "string"))
    throw notPortable("A tool of the program");
  return {
    ...Object.fromEntries(given.filter(([name]) => known.includes(name))),
    // A schema of a library is a program's object; as a JSON Schema it can be written down.
    ...(output === undefined ? {} : { output: outputForm(output) }),
  };
}

function notPortable(what: string): RetinueError {
  return new RetinueError("not-portable", `${what} cannot be carried out by a worker.`, {
    advice: "Leave it out, or run the agent in this process, without a store.",
  });
}

/** Reads a plan from the log; a worker of another version may have written it. */
export function readTravellingPlan(value: JsonValue): SessionPlan | PlannedChild {
  if (!isRecord(value)) throw unreadable("it is not an object");
  const { type, sessionId, workspace } = value;
  if (typeof sessionId !== "string" || !isSessionId(sessionId))
    throw unreadable("its session id is not a UUID");
  if (type === "session") return readSessionPlan(value, sessionId);
  if (type !== "plan") throw unreadable("it is the plan of neither a session nor a child");
  const output = isRecord(value["output"]) ? { output: value["output"] } : {};
  return {
    type,
    sessionId,
    plan: checkChildPlan(value["plan"]),
    ...output,
    workspace: readWorkspacePlan(workspace),
  };
}

/** Refuses what is not a complete plan of a child, with the field that is wrong. */
export function checkChildPlan(value: unknown): ChildPlan {
  return planOf(readAgentPlan(value, "child"));
}

function planOf<Plan>(
  reading:
    | { readonly type: "plan"; readonly plan: Plan }
    | { readonly type: "invalid"; readonly at: string; readonly expected: string; readonly found: string },
): Plan {
  if (reading.type === "plan") return reading.plan;
  const { at, expected, found } = reading;
  throw unreadable(`${at === "" ? "it" : `\`${at}\``} must be ${expected}, but it is ${found}`);
}

function readSessionPlan(value: Readonly<Record<string, unknown>>, sessionId: string): SessionPlan {
  const { prompt, options, workspace, agents, plan, approvals } = value;
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
    plan: plan === undefined ? undefined : planOf(readAgentPlan(plan, "main")),
    ...(value["remoteChildren"] === true ? { remoteChildren: true } : {}),
    ...(value["partialMessages"] === true ? { partialMessages: true } : {}),
    // Another word may be of a later version, and an unknown one must not allow anything.
    ...(approvals === undefined ? {} : { approvals: "refuse" }),
    ...(value["workflow"] === undefined ? {} : { workflow: readWorkflow(value["workflow"]) }),
    workspace: readWorkspacePlan(workspace),
  };
}

function readWorkflow(value: unknown): TravellingWorkflow {
  const { runId, script, args, continues } = isRecord(value) ? value : {};
  if (typeof runId !== "string" || !isRunId(runId) || typeof script !== "string")
    throw unreadable("its workflow has no script or no id of a run");
  return {
    runId,
    script,
    ...(args === undefined ? {} : { args: args as JsonValue }),
    ...(typeof continues === "string" ? { continues } : {}),
  };
}

function unreadable(reason: string): RetinueError {
  return new RetinueError("unreadable-plan", `The plan of this agent cannot be carried out: ${reason}.`, {
    advice: "Update this worker to the version that planned the agent.",
  });
}

/** The agents that travel with a plan. */
export function readPlanAgents(value: JsonValue): readonly AgentDefinition[] {
  const { locate } = parseJsonDocument(JSON.stringify(value), "the plan");
  const { definitions, diagnostics } = readSessionAgents(value, locate, "the plan");
  const broken = diagnostics.find(({ severity }) => severity === "error");
  if (broken !== undefined)
    throw new RetinueError("unreadable-plan", `An agent in the plan cannot be used: ${broken.message}`);
  return definitions;
}

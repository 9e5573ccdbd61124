import { randomUUID } from "node:crypto";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { parseModelReference } from "@retinue/config/models/select-subagent-model.ts";
import { newRunId } from "@retinue/core/journal/session-files.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { AgentPlan, ChildPlan } from "@retinue/core/planning/agent-plan.ts";
import { queueNeed } from "./serve-agents.ts";
import { anyModelNeed, modelNeeds, planNeeds } from "./session/plan-needs.ts";
import {
  checkChildPlan,
  formatNeeds,
  type PlannedChild,
  readTravellingPlan,
  type SessionPlan,
  toTravellingOptions,
} from "./session/session-plan.ts";
import { readAgent, startAgent } from "./start-agent.ts";
import { isStore, type JsonValue, type Store } from "./store.ts";
import { type WorkspacePlan, workspaceNeeds } from "./workspace/workspace-plan.ts";

export interface SessionRequest {
  readonly prompt: string;
  readonly workspace: WorkspacePlan;
  readonly options?: SessionOptions | undefined;
  /** The plan of its main agent, decided in the folder of the workspace: `planMain()`. Absent: the worker decides it. */
  readonly planned?: PlannedMain | undefined;
  /** Definitions keyed by name, as in `--agents`. */
  readonly agents?: JsonValue | undefined;
  /** Its children are agents of the store, which any worker can carry out; otherwise they run with it. */
  readonly remoteChildren?: boolean | undefined;
  /** Publish the answers while they are written; otherwise watchers get whole messages. */
  readonly partialMessages?: boolean | undefined;
  /** `wait`: what rules leave open waits for a person; `refuse`: it is refused. */
  readonly approvals?: "wait" | "refuse" | undefined;
  /** Only workers that serve this queue take it. */
  readonly queue?: string | undefined;
  /** What a worker must have, such as `tool:deploy`. */
  readonly needs?: readonly string[] | undefined;
}

const sessionShape = checks.shape(
  {
    prompt: checks.filled,
    workspace: checks.shape({ type: checks.oneOf(["shared", "pinned", "git"]) }, ["type"]),
    options: checks.thing,
    planned: checks.thing,
    needs: checks.texts,
    queue: checks.filled,
    approvals: checks.oneOf(["wait", "refuse"]),
    remoteChildren: checks.flag,
    partialMessages: checks.flag,
  },
  ["prompt", "workspace"],
);
const planShape = checks.shape({ plan: checks.thing, workspace: checks.thing, needs: checks.texts }, [
  "plan",
  "workspace",
]);
const isSession = checks.shape({ plan: checks.thing, model: checks.thing }, ["plan", "model"]);

/** Plans a session and hands it to the workers of a store; gives the id under which it can be watched, answered and stopped. */
export async function startSession(store: Store, request: SessionRequest): Promise<string> {
  checkArgument("The first argument of startSession()", isStore, store);
  checkArgument("The second argument of startSession()", sessionShape, request);
  const { prompt, workspace, options: given = {}, planned, agents, queue, needs = [] } = request;
  const sessionId = given.sessionId ?? randomUUID();
  const options = { model: planned?.model, ...given };
  const plan: SessionPlan = {
    type: "session",
    sessionId,
    prompt,
    options: toTravellingOptions(options),
    plan: planned?.plan,
    agents,
    ...(request.remoteChildren === true ? { remoteChildren: true } : {}),
    ...(request.partialMessages === true ? { partialMessages: true } : {}),
    ...(request.approvals === "refuse" ? { approvals: "refuse" } : {}),
    workspace,
  };
  const own = [...needs, ...modelNeedsOf(options.model), ...formatNeeds(plan)];
  return startPlanned(store, plan, { queue, needs: own });
}

/** The plan of a main agent as it travels. */
export interface PlannedMain {
  readonly plan: AgentPlan;
  /** The model that settings or variables here name; absent where nothing does, so that the worker chooses. */
  readonly model?: string | undefined;
}

/** What was decided for a session that was opened only for its plan. */
export function planMain(session: Pick<Session, "plan" | "model">): PlannedMain {
  checkArgument("The first argument of planMain()", isSession, session);
  const { plan, model } = session;
  const isNamed = plan.model.from === "settings" || plan.model.from === "ANTHROPIC_MODEL";
  if (!isNamed || model.provider === "offline") return { plan };
  return { plan, model: model.provider === "anthropic" ? model.id : `${model.provider}/${model.id}` };
}

/** A model that is named without a provider, or not at all, is served by whichever provider the worker has. */
function modelNeedsOf(model: SessionOptions["model"]): readonly string[] {
  const reference = typeof model === "string" ? parseModelReference(model) : undefined;
  return reference?.type === "provider" ? modelNeeds(reference) : [anyModelNeed];
}

export interface PlanRequest {
  /** A child's plan, as `session.planAgent` and `retinue plan --json` give it. */
  readonly plan: ChildPlan;
  readonly workspace: WorkspacePlan;
  readonly queue?: string | undefined;
  /** What a worker must have besides what the plan itself needs. */
  readonly needs?: readonly string[] | undefined;
}

/** Hands the plan of a child to the workers of a store. One that has what the plan needs carries it out as it is. */
export async function startPlan(store: Store, request: PlanRequest): Promise<string> {
  checkArgument("The first argument of startPlan()", isStore, store);
  checkArgument("The second argument of startPlan()", planShape, request);
  const { workspace, queue, needs = [] } = request;
  const plan = checkChildPlan(request.plan);
  const planned: PlannedChild = { type: "plan", sessionId: randomUUID(), plan, workspace };
  return startPlanned(store, planned, { queue, needs: [...needs, ...planNeeds(plan)] });
}

export interface WorkflowRequest
  extends Pick<SessionRequest, "workspace" | "options" | "planned" | "agents" | "queue" | "needs"> {
  /** The text of the script. */
  readonly script: string;
  /** What the script reads as `args`. */
  readonly args?: JsonValue | undefined;
  /** An earlier run of this store, as the id that it had: its finished steps are taken. */
  readonly continues?: string | undefined;
}

const workflowShape = checks.shape(
  {
    script: checks.filled,
    workspace: checks.shape({ type: checks.oneOf(["shared", "pinned"]) }, ["type"]),
    options: checks.thing,
    planned: checks.thing,
    needs: checks.texts,
    queue: checks.filled,
    continues: checks.filled,
  },
  ["script", "workspace"],
);

/** Hands a workflow to the workers of a store: its script survives each of them, and any of them takes its steps. Gives its id. */
export async function startWorkflow(store: Store, request: WorkflowRequest): Promise<string> {
  checkArgument("The first argument of startWorkflow()", isStore, store);
  checkArgument("The second argument of startWorkflow()", workflowShape, request);
  const {
    script,
    args,
    continues,
    workspace,
    options: given = {},
    planned,
    agents,
    queue,
    needs = [],
  } = request;
  const { readWorkflowScript } = await import("@retinue/config/workflows/read-workflow-script.ts");
  const read = readWorkflowScript(script);
  if (read.type === "broken")
    throw new RetinueError("workflow-broken", read.problem.message, { advice: read.problem.advice });
  const runId = continues === undefined ? newRunId() : await runOf(store, continues);
  const options = { model: planned?.model, ...given };
  const plan: SessionPlan = {
    type: "session",
    sessionId: given.sessionId ?? randomUUID(),
    prompt: `workflow ${read.meta.name}`,
    options: toTravellingOptions(options),
    plan: planned?.plan,
    agents,
    workflow: {
      runId,
      script,
      args,
      continues,
    },
    workspace,
  };
  return startPlanned(store, plan, { queue, needs: [...needs, ...formatNeeds(plan)] });
}

async function runOf(store: Store, agent: string): Promise<string> {
  const { plan } = await readAgent(store, agent);
  const travelling = plan === undefined ? undefined : readTravellingPlan(plan);
  if (travelling?.type === "session" && travelling.workflow !== undefined) return travelling.workflow.runId;
  throw new RetinueError("unknown-run", `${agent} is not a workflow of this store.`, {
    advice: "`retinue tasks --store URL` lists what is in the store.",
  });
}

async function startPlanned(
  store: Store,
  plan: SessionPlan | PlannedChild,
  { queue, needs }: { readonly queue: string | undefined; readonly needs: readonly string[] },
): Promise<string> {
  const queues = queue === undefined ? [] : [queueNeed(queue)];
  const all = [...needs, ...workspaceNeeds(plan.workspace), ...queues];
  // A plan is made of plain data.
  const json = JSON.parse(JSON.stringify(plan)) as JsonValue;
  const { sessionId: agent } = plan;
  const outcome = await startAgent(store, { agent, plan: json, needs: all });
  // The same request again, as after an answer that was lost, is no conflict.
  if (outcome === "exists" && JSON.stringify((await readAgent(store, agent)).plan) !== JSON.stringify(json))
    throw new RetinueError("session-conflict", `There is already an agent ${agent} in this store.`, {
      advice: `Choose another id, or continue it: retinue resume ${agent} PROMPT`,
    });
  return agent;
}

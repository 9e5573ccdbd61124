import { randomUUID } from "node:crypto";
import { parseModelReference } from "../model/model-reference.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { SessionOptions } from "../runtime/options/runtime-options.ts";
import { startAgent } from "./agent-client.ts";
import { queueNeed } from "./serve-agents.ts";
import { anyModelNeed, modelNeeds, planNeeds } from "./session/plan-needs.ts";
import {
  checkChildPlan,
  type PlannedChild,
  type SessionPlan,
  toTravellingOptions,
} from "./session/session-plan.ts";
import type { JsonValue, Store } from "./store.ts";
import { type WorkspacePlan, workspaceNeeds } from "./workspace/workspace-plan.ts";

export interface SessionRequest {
  readonly prompt: string;
  readonly workspace: WorkspacePlan;
  readonly options?: SessionOptions;
  /** Definitions keyed by name, as in `--agents`. */
  readonly agents?: JsonValue;
  /** Only workers that serve this queue take it. */
  readonly queue?: string;
  /** What a worker must have, such as `tool:deploy`. */
  readonly needs?: readonly string[];
}

/** Plans a session and hands it to the workers of a store; gives the id under which it can be watched, answered and stopped. */
export async function startSession(store: Store, request: SessionRequest): Promise<string> {
  const { prompt, workspace, options = {}, agents, queue, needs = [] } = request;
  const sessionId = options.sessionId ?? randomUUID();
  const plan: SessionPlan = {
    type: "session",
    sessionId,
    prompt,
    options: toTravellingOptions(options),
    ...(agents === undefined ? {} : { agents }),
    workspace,
  };
  return startPlanned(store, plan, { queue, needs: [...needs, ...modelNeedsOf(options.model)] });
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
  readonly queue?: string;
  /** What a worker must have besides what the plan itself needs. */
  readonly needs?: readonly string[];
}

/** Hands the plan of a child to the workers of a store. One that has what the plan needs carries it out as it is. */
export async function startPlan(store: Store, request: PlanRequest): Promise<string> {
  const { workspace, queue, needs = [] } = request;
  const plan = checkChildPlan(request.plan);
  const planned: PlannedChild = { type: "plan", sessionId: randomUUID(), plan, workspace };
  return startPlanned(store, planned, { queue, needs: [...needs, ...planNeeds(plan)] });
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
  await startAgent(store, { agent: plan.sessionId, plan: json, needs: all });
  return plan.sessionId;
}

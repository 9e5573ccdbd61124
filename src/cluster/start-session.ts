import { randomUUID } from "node:crypto";
import type { SessionOptions } from "../runtime/runtime-options.ts";
import { startAgent } from "./agent-client.ts";
import { queueNeed } from "./serve-agents.ts";
import { type SessionPlan, toTravellingOptions } from "./session/session-plan.ts";
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
  const all = [...needs, ...workspaceNeeds(workspace), ...(queue === undefined ? [] : [queueNeed(queue)])];
  // A plan is made of options that are plain data.
  await startAgent(store, {
    agent: sessionId,
    plan: JSON.parse(JSON.stringify(plan)) as JsonValue,
    needs: all,
  });
  return sessionId;
}

import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { ChildServers } from "./child-host.ts";

/** A child that is planned and not started yet. */
export interface DecidedChild {
  readonly type: "planned";
  readonly plan: ChildPlan;
  readonly definition: AgentDefinition;
  /** Connected for this child alone; it must be released. */
  readonly servers: ChildServers | undefined;
}

/** What was connected for a child that is not started after all ends again. */
export async function unlessStarted<Outcome extends { readonly type: string }>(
  servers: ChildServers | undefined,
  launch: () => Promise<Outcome>,
): Promise<Outcome> {
  let isStarted = false;
  try {
    const outcome = await launch();
    isStarted = outcome.type === "started";
    return outcome;
  } finally {
    if (!isStarted) await servers?.release();
  }
}

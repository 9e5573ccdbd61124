import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import { withServerInstructions } from "../planning/server-instructions.ts";
import type { ChildServers, Isolated } from "./child-host.ts";

/** A child that is planned and not started yet. */
export interface DecidedChild {
  readonly type: "planned";
  readonly plan: ChildPlan;
  readonly definition: AgentDefinition;
  readonly held: HeldForChild;
}

/** What was made for one child alone, and must be let go of. */
export interface HeldForChild {
  servers?: ChildServers | undefined;
  isolated?: Extract<Isolated, { readonly type: "isolated" }>;
}

/** Whether servers of its own would start, in a place that may not be the session's. */
export function isolatesServers(
  { mcpServers = [] }: Pick<AgentDefinition, "mcpServers">,
  { starts, background }: { readonly starts: boolean; readonly background: boolean },
): boolean {
  return starts && !background && mcpServers.some(({ type }) => type === "inline");
}

/** A prompt that was made anew for a worktree says nothing of servers yet. */
export function reportedOf(plan: ChildPlan, servers: ChildServers | undefined): ChildPlan {
  return withServerInstructions(plan, servers?.instructions ?? []);
}

/** What is held for a child that is not started after all is let go of. */
export async function unlessStarted<Outcome extends { readonly type: string }>(
  held: HeldForChild,
  launch: () => Promise<Outcome>,
): Promise<Outcome> {
  let isGoingOn = false;
  try {
    const outcome = await launch();
    isGoingOn = outcome.type !== "refused";
    return outcome;
  } finally {
    if (!isGoingOn) {
      await held.servers?.release();
      await held.isolated?.finish();
    }
  }
}

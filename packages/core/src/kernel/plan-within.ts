import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import { type AcceptedRight, withinOwnRights } from "../planning/within-own-rights.ts";
import type { Session } from "./session.ts";

/**
 * The plan of a child that comes from a file or a store, as far as the rights of this session reach. What the session would give
 * to an agent of the same name is asked of it; throws where the plan is for a folder that is not the session's.
 */
export async function planWithin(
  plan: ChildPlan,
  session: Pick<Session, "plan" | "planAgent">,
  accepts: readonly AcceptedRight[],
): Promise<ChildPlan> {
  const { directory, task } = plan;
  // A working tree is taken only from the session's own.
  if (task.isolation === undefined && !isInside(directory, session.plan.policy.workingDirectories))
    throw new RetinueError(
      "unreadable-plan",
      `The plan is for ${directory}, which is not in the folder of its session.`,
      { advice: "Create the plan again in the folder where it is carried out." },
    );
  const planned = await session.planAgent({
    agentType: task.agentType,
    description: task.description,
    prompt: task.prompt,
    origin: "program",
  });
  const own = planned.type === "planned" ? { child: planned.plan } : {};
  return withinOwnRights(plan, { main: session.plan, ...own }, accepts);
}

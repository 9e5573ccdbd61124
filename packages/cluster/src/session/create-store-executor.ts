import { randomUUID } from "node:crypto";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { stoppedEnding } from "@retinue/core/kernel/run-handle.ts";
import type { ChildPlan } from "@retinue/core/planning/agent-plan.ts";
import type { Executor } from "@retinue/core/tasks/task-manager.ts";
import type { AgentContext } from "../agent-program.ts";
import type { JsonValue } from "../store.ts";
import { type WorkspacePlan, workspaceNeeds } from "../workspace/workspace-plan.ts";
import { planNeeds } from "./plan-needs.ts";
import type { PlannedChild } from "./session-plan.ts";

/**
 * Makes agents of the store of children: any worker can carry them out. Their parent does not wait for them in its process. It is
 * notified that they work elsewhere, ends its turn and parks; their results wake it.
 */
export function createStoreExecutor(
  context: Pick<AgentContext, "agent" | "startChild">,
  workspace: WorkspacePlan,
): (local: Executor) => Executor {
  return (local) => ({
    execute(execution, control, signal) {
      const { plan } = execution;
      if (!isPortable(plan, workspace)) return local.execute(execution, control, signal);
      return startElsewhere(plan, { context, workspace });
    },
  });
}

/**
 * A child that begins with its parent's conversation, continues one of its own or has a working tree needs files of this worker, and
 * a branch has one writer.
 */
function isPortable({ task }: ChildPlan, workspace: WorkspacePlan): boolean {
  return !task.forksContext && !task.resumed && task.isolation === undefined && workspace.type !== "git";
}

async function* startElsewhere(
  plan: ChildPlan,
  {
    context,
    workspace,
  }: { readonly context: Pick<AgentContext, "agent" | "startChild">; readonly workspace: WorkspacePlan },
): AsyncGenerator<RunEvent> {
  const planned: PlannedChild = { type: "plan", sessionId: randomUUID(), plan, workspace };
  await context.startChild({
    agent: childName(context.agent, plan.agent.id),
    // A plan is made of plain data.
    plan: JSON.parse(JSON.stringify(planned)) as JsonValue,
    needs: [...planNeeds(plan), ...workspaceNeeds(workspace)],
  });
  const text = `This agent works on another worker now. Its result reaches you as a message after you have ended your turn: if you need it, end your turn and say that you wait for ${plan.agent.id}.`;
  yield { type: "run-ended", ending: { ...stoppedEnding("elsewhere"), status: "completed", text } };
}

function childName(parent: string, id: string): string {
  return `${parent}/${id}`;
}

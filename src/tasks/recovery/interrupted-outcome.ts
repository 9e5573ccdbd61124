import { settledSoon } from "../../foundation/abortable.ts";
import { isRetinueError, RetinueError } from "../../foundation/retinue-error.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { SpawnOutcome } from "../create-agent-tool.ts";
import type { StoppedBy, TaskManager } from "../task-manager.ts";
import { hasEnded, type TaskState, wasCutOff } from "../task-state.ts";

/** Why a run is stopped when the whole session ends; the child then counts as cut off and not as given up. */
const sessionEnds: ReadonlySet<string> = new Set([
  "interrupted",
  "reader-gone",
  "session-closed",
  "runtime-disposed",
]);

export function endsSession(reason: unknown): boolean {
  return isRetinueError(reason) && sessionEnds.has(reason.code);
}

/** Less than a tool call is waited for after a stop, so that its answer still names the child. */
const patienceMs = 2_000;

/** Stops a child whose caller was stopped; one that takes long is left to end by itself. */
export async function stopWithCaller(
  { stop }: Pick<TaskManager, "stop">,
  agentId: string,
  reason: unknown,
): Promise<void> {
  const by: StoppedBy = endsSession(reason) ? "session" : "parent";
  const late = AbortSignal.abort(new RetinueError("stop-late", "The agent did not end in time."));
  await settledSoon(stop(agentId, by), late, patienceMs).catch(() => undefined);
}

/** Whether a child was cut off with its session, or has not ended yet although the one that waited for it was stopped. */
export function isInterrupted(state: TaskState | undefined, { aborted }: AbortSignal): boolean {
  return state === undefined || !hasEnded(state) ? aborted : wasCutOff(state);
}

/** What the call that waited for a child is answered with when both were stopped. */
export function interruptedOutcome({ agent, task }: ChildPlan): SpawnOutcome {
  return {
    type: "ended",
    text: interruptedText(agent.id, task.agentType),
    isError: true,
    data: { status: interruptedStatus, agentId: agent.id, agentType: task.agentType, prompt: task.prompt },
  };
}

/** Marks results that do not show how a child ended. */
export const interruptedStatus = "interrupted";

/** The child of a call that was cut off, and how to resume it. */
export function interruptedText(agentId: string, agentType: string): string {
  return `Interrupted: the session ended while the agent ${agentId} (${agentType}) was running. It is stopped, and what it did is kept. Continue with it: call Agent with resume: ${JSON.stringify(agentId)}; do not start another for the same task.`;
}

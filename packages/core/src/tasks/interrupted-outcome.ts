import { settledSoon } from "@retinue/base/foundation/abortable.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import { noUsage } from "../conversation/usage.ts";
import { loadSession } from "../journal/session-choices.ts";
import { type SessionFiles, sessionFiles } from "../journal/session-files.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import { hasEnded, type TaskState, wasCutOff } from "../protocol/agent-state.ts";
import { foldChildRun } from "./child-run.ts";
import type { SpawnOutcome } from "./create-agent-tool.ts";
import { type FoundTask, findTasks } from "./find-tasks.ts";
import { resultText } from "./result-text.ts";
import type { StoppedBy, TaskManager } from "./task-manager.ts";

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
const stopTimeoutMs = 2_000;

/** Stops a child whose caller was stopped; one that takes long is left to end by itself. */
export async function stopWithCaller(
  { stop }: Pick<TaskManager, "stop">,
  agentId: string,
  reason: unknown,
): Promise<void> {
  const by: StoppedBy = endsSession(reason) ? "session" : "parent";
  const late = AbortSignal.abort(new RetinueError("stop-late", "The agent did not end in time."));
  await settledSoon(stop(agentId, by), late, stopTimeoutMs).catch(() => undefined);
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
function interruptedText(agentId: string, agentType: string): string {
  return `Interrupted: the session ended while the agent ${agentId} (${agentType}) was running. It is stopped, and what it did is kept. Continue with it: call Agent with resume: ${JSON.stringify(agentId)}; do not start another for the same task.`;
}

/**
 * What can be said to calls that were cut off and had started a child: its result where the child got that far, else which
 * child it is and how to resume it.
 */
export async function findChildAnswers(
  calls: readonly Pick<ToolUseBlock, "id">[],
  { transcripts, sessionId }: { readonly transcripts: string; readonly sessionId: string },
): Promise<ReadonlyMap<string, ToolResultBlock>> {
  const answers = new Map<string, ToolResultBlock>();
  if (calls.length === 0) return answers;
  const wanted = new Set(calls.map(({ id }) => id));
  const files = sessionFiles(transcripts, sessionId);
  for (const task of await findTasks(transcripts, { sessionId })) {
    if (task.callId === undefined || !wanted.has(task.callId)) continue;
    answers.set(task.callId, {
      type: "tool_result",
      tool_use_id: task.callId,
      ...(await answerOf(task, files)),
    });
  }
  return answers;
}

async function answerOf(
  task: FoundTask,
  files: SessionFiles,
): Promise<Pick<ToolResultBlock, "content" | "is_error">> {
  const who = `agent ${task.id} (${task.agentType})`;
  if (task.state === "interrupted" || task.state === "running") {
    return { content: interruptedText(task.id, task.agentType), is_error: true };
  }
  const text = await lastTextOf(task);
  const ending = {
    status: task.state,
    reason: task.reason ?? task.state,
    text,
    denials: [],
    totals: {
      usage: { ...noUsage, inputTokens: task.tokens },
      turns: 0,
      toolUses: task.toolUses,
      durationMs: task.lastSignAt - (task.startedAt ?? task.lastSignAt),
      modelMs: 0,
    },
  };
  const result = resultText({
    agentId: task.id,
    description: task.description,
    ending,
    file: files.agent(task.id).output,
  });
  const isError = task.state === "failed" || task.state === "stopped";
  return {
    content: `The session was interrupted after the ${who} had ended; this is what it handed in.\n\n${result}`,
    ...(isError ? { is_error: true } : {}),
  };
}

async function lastTextOf({ transcript }: FoundTask): Promise<string> {
  const { records } = await loadSession(transcript, { sidechain: true });
  return foldChildRun(records).lastText;
}

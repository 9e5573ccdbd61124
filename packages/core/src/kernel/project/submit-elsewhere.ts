// @io
import { existsSync } from "node:fs";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { mainAgentId } from "../../conversation/agent-event.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { controlFiles, leaveOp, type RemoteOp } from "../../tasks/watch-control.ts";

/** An agent that another process runs, or a workflow. */
export interface AgentElsewhere {
  readonly sessionId: string;
  /** The file that is locked as long as a process runs it. */
  readonly transcript: string;
}

export interface SubmitElsewhereOptions {
  readonly transcripts: string;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

const lookMs = 50;

/**
 * Submits an op to an agent that another process runs. Resolves when that process has taken it; the stop of a child, when the
 * child has ended.
 */
export async function submitElsewhere(
  op: RemoteOp,
  { sessionId, transcript }: AgentElsewhere,
  { transcripts, signal, timeoutMs = 10_000 }: SubmitElsewhereOptions,
): Promise<void> {
  const { file, takeBack } = leaveOp(controlFiles(sessionFiles(transcripts, sessionId)), op);
  const endsAgent = op.type === "stop" && op.agent !== mainAgentId;
  const isDone = (): boolean => (endsAgent ? !hasLiveOwner(transcript) : !existsSync(file));
  try {
    for (let waited = 0; waited < timeoutMs && !isDone(); waited += lookMs) {
      if (!endsAgent && !hasLiveOwner(transcript)) break;
      await sleep(lookMs, signal);
    }
    if (isDone()) return;
    if (!endsAgent)
      throw new RetinueError(
        "not-taken",
        `The process that runs the agent did not take the ${op.type === "message" ? "message" : "request"}.`,
        { advice: "It is not working on a prompt, or it has ended; resume it with a prompt instead." },
      );
    const why = existsSync(file)
      ? "the process that runs it did not take the request"
      : "it was asked to stop, but has not ended yet";
    throw new RetinueError("not-stopped", `${op.agent} still runs after ${timeoutMs / 1000} s: ${why}.`, {
      advice: "Kill the process that runs it; its work so far is in its transcript.",
    });
  } finally {
    takeBack();
  }
}

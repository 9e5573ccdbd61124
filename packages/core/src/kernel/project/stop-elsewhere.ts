// @io
import { existsSync } from "node:fs";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { FoundTask } from "../../tasks/find-tasks.ts";
import { controlFiles } from "../../tasks/watch-control.ts";
import { writeStopRequest } from "../../tasks/write-stop-request.ts";

const timeoutMs = 10_000;
const lookMs = 50;

/** Asks the process that runs a child to stop it, and resolves when it has ended. */
export async function stopElsewhere(
  task: FoundTask,
  { transcripts, signal }: { readonly transcripts: string; readonly signal: AbortSignal },
): Promise<void> {
  const files = controlFiles(sessionFiles(transcripts, task.sessionId));
  const takeBack = writeStopRequest(files, task.id);
  try {
    if (!(await hasEndedInTime(task, signal))) throw tooSlow(task, existsSync(files.request(task.id)));
  } finally {
    takeBack();
  }
}

async function hasEndedInTime({ transcript }: FoundTask, signal: AbortSignal): Promise<boolean> {
  for (let waited = 0; waited < timeoutMs; waited += lookMs) {
    if (!hasLiveOwner(transcript)) return true;
    await sleep(lookMs, signal);
  }
  return !hasLiveOwner(transcript);
}

function tooSlow({ id }: FoundTask, isUnheard: boolean): RetinueError {
  const why = isUnheard
    ? "the process that runs it did not hear the request"
    : "it was asked to stop and has not ended yet";
  return new RetinueError("not-stopped", `${id} still runs after ${timeoutMs / 1000} s: ${why}.`, {
    advice: "End the process that runs it; what the agent has done so far stays in its transcript.",
  });
}

import { existsSync } from "node:fs";
import { sleep } from "../../../foundation/abort.ts";
import { Fault } from "../../../foundation/fault.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import { hasLiveOwner } from "../../../storage/owner-lock.ts";
import { controlFiles } from "../../../tasks/control-request.ts";
import type { FoundTask } from "../../../tasks/find-tasks.ts";
import { writeStopRequest } from "../../../tasks/write-control.ts";
import type { CommandContext } from "../session-options.ts";
import { findNamedTask, transcriptsOf } from "./find-named-task.ts";

const patienceMs = 10_000;
const lookMs = 50;

/** `retinue stop ID`: ends a running child agent, whichever process of this user runs it. */
export async function stop({ host }: CommandContext, written: string): Promise<number> {
  const task = await findNamedTask(host, written);
  if (task.state !== "running") {
    host.stdout.write(`${task.id} is not running; it is ${task.state}.\n`);
    return 0;
  }
  const files = controlFiles(sessionFiles(transcriptsOf(host), task.sessionId));
  const takeBack = writeStopRequest(files, task.id);
  const giveUp = new AbortController();
  const forget = host.onInterrupt(() => giveUp.abort(new Fault("interrupted", "Interrupted.")));
  try {
    if (!(await hasEndedInTime(task, giveUp.signal))) throw tooSlow(task, existsSync(files.request(task.id)));
  } finally {
    takeBack();
    forget();
  }
  const { state } = await findNamedTask(host, task.id);
  host.stdout.write(`${task.id} is ${state}. \`retinue resume ${task.id} "…"\` goes on with it.\n`);
  return 0;
}

async function hasEndedInTime({ transcript }: FoundTask, signal: AbortSignal): Promise<boolean> {
  for (let waited = 0; waited < patienceMs; waited += lookMs) {
    if (!hasLiveOwner(transcript)) return true;
    await sleep(lookMs, signal);
  }
  return !hasLiveOwner(transcript);
}

function tooSlow({ id }: FoundTask, isUnheard: boolean): Fault {
  const why = isUnheard
    ? "the process that runs it did not hear the request"
    : "it was asked to stop and has not ended yet";
  return new Fault("not-stopped", `${id} still runs after ${patienceMs / 1000} s: ${why}.`, {
    advice: "End the process that runs it; what the agent has done so far stays in its transcript.",
  });
}

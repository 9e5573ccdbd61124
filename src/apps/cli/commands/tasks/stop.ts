import type { CommandContext } from "../../session-options.ts";
import { findNamedTask, transcriptsOf } from "./find-named-task.ts";
import { stopElsewhere } from "./stop-elsewhere.ts";

/** `retinue stop ID`: ends a running child agent, whichever process of this user runs it. */
export async function stop({ host }: CommandContext, written: string): Promise<number> {
  const task = await findNamedTask(host, written);
  if (task.state !== "running") {
    host.stdout.write(`${task.id} is not running; it is ${task.state}.\n`);
    return 0;
  }
  const giveUp = new AbortController();
  const forget = host.onInterrupt((reason) => giveUp.abort(reason));
  try {
    await stopElsewhere(task, { transcripts: transcriptsOf(host), signal: giveUp.signal });
  } finally {
    forget();
  }
  const { state } = await findNamedTask(host, task.id);
  host.stdout.write(`${task.id} is ${state}. \`retinue resume ${task.id} "…"\` resumes it.\n`);
  return 0;
}

import type { CommandContext } from "../../shared/command-context.ts";
import { openTasks } from "../../shared/open-project.ts";
import { openBackground } from "../background/find-background.ts";

/** `retinue stop ID`: ends a session in the background, or a running child agent, whichever process of this user runs it. */
export async function stop(context: CommandContext, written: string): Promise<number> {
  const { host } = context;
  const tasks = openTasks(host);
  const session = await openBackground(host).find(written);
  if (session !== undefined) {
    const giveUp = new AbortController();
    const forget = host.onInterrupt((reason) => giveUp.abort(reason));
    const { stopBackground } = await import("../background/background-actions.ts");
    await stopBackground(context, session, giveUp.signal).finally(forget);
    return 0;
  }
  const task = await tasks.get(written);
  if (task.state !== "running") {
    host.stdout.write(`${task.id} is not running; it is ${task.state}.\n`);
    return 0;
  }
  const giveUp = new AbortController();
  const forget = host.onInterrupt((reason) => giveUp.abort(reason));
  try {
    const { state } = await tasks.stop(task.id, { signal: giveUp.signal });
    host.stdout.write(`${task.id} is ${state}. \`retinue resume ${task.id} "…"\` resumes it.\n`);
  } finally {
    forget();
  }
  return 0;
}

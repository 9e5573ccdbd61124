import type { CommandContext } from "../../shared/command-context.ts";
import { openTasks } from "../../shared/open-project.ts";

/** `retinue stop ID`: ends a running child agent, whichever process of this user runs it. */
export async function stop({ host }: CommandContext, written: string): Promise<number> {
  const tasks = openTasks(host);
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

import type { UserMessage } from "../conversation/message.ts";
import { stoppedNote } from "../tasks/recovery-note.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import { hasEnded, wasCutOff } from "../tasks/task-state.ts";

/**
 * Stops the children of a session that ends. The message names those that nobody waited for, so that the conversation itself
 * says what is stopped and can be resumed; undefined where there were none.
 */
export async function stopChildren(
  tasks: Pick<TaskManager, "list" | "stop">,
): Promise<UserMessage | undefined> {
  const running = tasks.list().filter((task) => !hasEnded(task));
  const stopped = await Promise.all(running.map(({ id }) => tasks.stop(id, "session")));
  const cutOff = stopped.filter((state) => state !== undefined).filter(wasCutOff);
  const unattended = cutOff.filter(({ background }) => background);
  return unattended.length === 0 ? undefined : stoppedNote(unattended);
}

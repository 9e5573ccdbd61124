import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { hasEnded, wasCutOff } from "../../protocol/agent-state.ts";
import { stoppedNote } from "../../tasks/interrupted-note.ts";
import { endsSession } from "../../tasks/interrupted-outcome.ts";
import type { TaskManager } from "../../tasks/task-manager.ts";

/**
 * Stops the children of a session whose run was stopped because the session ends. The event names those that no one waited for,
 * so that the conversation itself says what is stopped and can be resumed.
 */
export async function* stopChildren(
  tasks: Pick<TaskManager, "list" | "stop">,
  run: { readonly ending: RunEnding; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent, void> {
  if (run.ending.status !== "stopped" || !endsSession(run.signal.reason)) return;
  const running = tasks.list().filter((task) => !hasEnded(task));
  const stopped = await Promise.all(running.map(({ id }) => tasks.stop(id, "session")));
  const cutOff = stopped.filter((state) => state !== undefined).filter(wasCutOff);
  // What a subagent has started is told to that one, when it is resumed.
  const isNested = ({ parentId }: { readonly parentId: string }) => running.some(({ id }) => id === parentId);
  const unattended = cutOff.filter((state) => state.background && !isNested(state));
  if (unattended.length === 0) return;
  yield { type: "user-added", message: stoppedNote(unattended), origin: "message" };
}

import { findInterruptedSessions, type InterruptedSession } from "./find-interrupted-sessions.ts";
import { type FoundTask, findTasks } from "./find-tasks.ts";

/** Cut off for certain: what another program wrote may only not say how it ended. */
export function isInterrupted({ state, hasPlan }: FoundTask): boolean {
  return state === "interrupted" && hasPlan;
}

/** Everything in a project whose process died before it ended. */
export interface Interrupted {
  /** Child agents of any session, the newest first. */
  readonly agents: readonly FoundTask[];
  /** Main conversations. */
  readonly sessions: readonly InterruptedSession[];
}

export async function findInterrupted(transcripts: string): Promise<Interrupted> {
  const tasks = await findTasks(transcripts, { isSettled: () => true });
  return {
    agents: tasks.filter(isInterrupted),
    sessions: await findInterruptedSessions(transcripts),
  };
}

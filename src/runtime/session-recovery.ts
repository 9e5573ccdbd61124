import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";

/** What a session says of children that a crash had cut off. */
export interface SessionRecovery {
  /** Before the first prompt: takes them up and tells of them. Later it does nothing. */
  begin(signal: AbortSignal): AsyncGenerator<RunEvent, void>;
  /** The first result after that says how many there were. */
  count(ending: RunEnding): RunEnding;
}

export function createSessionRecovery(
  recover: ((signal: AbortSignal) => Promise<readonly InterruptedAgent[]>) | undefined,
): SessionRecovery {
  let waiting = recover;
  let found = 0;
  return {
    async *begin(signal) {
      const work = waiting;
      waiting = undefined;
      const agents = (await work?.(signal)) ?? [];
      found += agents.length;
      if (agents.length > 0) yield { type: "agents-interrupted", agents };
    },
    count(ending) {
      const interruptedAgents = found;
      found = 0;
      return interruptedAgents === 0 ? ending : { ...ending, interruptedAgents };
    },
  };
}

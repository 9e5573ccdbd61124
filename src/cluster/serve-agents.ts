import { version } from "../foundation/version.ts";
import { activateAgent } from "./activate-agent.ts";
import type { AgentProgram } from "./agent-program.ts";
import type { ServeOptions, Store, Worker } from "./store.ts";

export interface ServeAgentsOptions extends ServeOptions {
  /** Queues this worker serves besides the one for everybody. */
  readonly queues?: readonly string[];
  /** The machine's own name, for agents that are pinned to it. */
  readonly machine?: string;
  /** Recorded with each claim. */
  readonly codeVersion?: string;
}

/** Makes this process a worker that runs agents by a program. */
export async function serveAgents(
  store: Store,
  program: AgentProgram,
  options: ServeAgentsOptions,
): Promise<Worker> {
  const { queues = [], machine, has = [], codeVersion = version } = options;
  const pinned = machine === undefined ? [] : [machineNeed(machine)];
  const all = [...has, ...queues.map(queueNeed), ...pinned];
  return store.engine.serve(
    (activation) => activateAgent(store, activation, { program, version: codeVersion, has: all }),
    { ...options, has: all },
  );
}

export function queueNeed(queue: string): string {
  return `queue:${queue}`;
}

export function machineNeed(machine: string): string {
  return `machine:${machine}`;
}

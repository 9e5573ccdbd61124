import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import type { TaskEvent } from "@retinue/core/kernel/session.ts";

/** How many children a session has had and what became of them, as results report it. */
export interface SubagentStats {
  readonly spawned: number;
  readonly requested: { readonly background: number; readonly foreground: number; readonly unset: number };
  readonly started_in_background: number;
  readonly max_depth: number;
  readonly spawned_by_subagents: number;
  readonly completed: number;
  readonly failed: number;
  readonly killed: { readonly parent: number; readonly user: number; readonly system: number };
  readonly refused: {
    readonly depth_limit: number;
    readonly concurrency_limit: number;
    readonly budget: number;
  };
  readonly by_type: Readonly<Record<string, number>>;
}

export const noSubagents: SubagentStats = {
  spawned: 0,
  requested: { background: 0, foreground: 0, unset: 0 },
  started_in_background: 0,
  max_depth: 0,
  spawned_by_subagents: 0,
  completed: 0,
  failed: 0,
  killed: { parent: 0, user: 0, system: 0 },
  refused: { depth_limit: 0, concurrency_limit: 0, budget: 0 },
  by_type: {},
};

export interface SubagentCount {
  /** Receives the calls of the main agent. */
  onEvent(event: RunEvent): void;
  onChildEvent(pendingMessages: TaskEvent): void;
  stats(): SubagentStats;
}

export function createSubagentCount(): SubagentCount {
  const asked = new Map<string, "background" | "foreground" | "unset">();
  const runs = new Map<string, TaskEvent["state"]>();
  const ended = new Map<string, string>();
  return {
    onEvent(event) {
      if (event.type !== "assistant-answered") return;
      for (const block of event.message.content) {
        if (block.type !== "tool_use" || (block.name !== "Agent" && block.name !== "Task")) continue;
        const requested = isRecord(block.input) ? block.input["run_in_background"] : undefined;
        const placement = requested === true ? "background" : "foreground";
        asked.set(block.id, requested === undefined ? "unset" : placement);
      }
    },
    onChildEvent({ event, state }) {
      const run = `${state.id} ${state.startedAt}`;
      if (!runs.has(run)) runs.set(run, state);
      if (event.type === "run-ended") ended.set(run, event.ending.status);
    },
    stats() {
      const all = [...runs.values()];
      const requestedRights = all.map(({ callId = "" }) => asked.get(callId) ?? "unset");
      const count = (wanted: readonly string[]): number =>
        [...ended.values()].filter((status) => wanted.includes(status)).length;
      const countRequested = (wanted: string): number =>
        requestedRights.filter((wish) => wish === wanted).length;
      const types = Map.groupBy(all, ({ agentType }) => agentType);
      return {
        ...noSubagents,
        spawned: all.length,
        requested: {
          background: countRequested("background"),
          foreground: countRequested("foreground"),
          unset: countRequested("unset"),
        },
        started_in_background: all.filter(({ background }) => background).length,
        max_depth: Math.max(0, ...all.map(({ depth = 1 }) => depth)),
        completed: count(["completed", "partial"]),
        failed: count(["failed"]),
        killed: { parent: 0, user: count(["stopped"]), system: 0 },
        by_type: Object.fromEntries([...types].map(([type, list]) => [type, list.length])),
      };
    },
  };
}

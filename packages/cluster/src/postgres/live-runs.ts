import { randomUUID } from "node:crypto";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { classifyFault } from "../classify-fault.ts";
import { type ActivationOutcome, ownershipLost, type RunActivation, thrownPauseMs } from "../store.ts";
import type { AgentTable, OwnedRun } from "./agent-table.ts";
import type { RunSchedule } from "./run-schedule.ts";

export interface LiveRunsOptions {
  readonly worker: string;
  readonly agents: AgentTable;
  readonly schedule: RunSchedule;
  readonly run: RunActivation;
  readonly draining: AbortSignal;
  /** True while no one can have taken over, because this worker has reported a moment ago. */
  readonly isCertain: () => boolean;
  readonly onError: (error: unknown, agent: string) => void;
  /** A slot is free again. */
  readonly onRest: () => void;
}

/** The agents that run in this process. */
export interface LiveRuns {
  readonly size: number;
  /** Whether a run is in progress here. */
  has(agent: string, run: string): boolean;
  /** Runs an agent until it rests; never throws. */
  start(agent: string, run: string): Promise<void>;
  cancel(agent: string): void;
  /** Others have taken over everything. */
  loseAll(): void;
  /** Resolves when nothing runs; what still does after the time is aborted and given back. */
  rest(graceMs: number): Promise<void>;
}

interface Live {
  readonly agent: string;
  readonly run: string;
  controller: AbortController;
}

export function createLiveRuns(options: LiveRunsOptions): LiveRuns {
  const { agents, worker, onError, onRest } = options;
  const live = new Set<Live>();
  let onEmpty: (() => void) | undefined;

  return {
    get size() {
      return live.size;
    },
    has: (agent, run) => [...live].some((entry) => entry.agent === agent && entry.run === run),
    // Counted before the first wait: the next look for free slots must see it.
    async start(agent, run) {
      const entry = { agent, run, controller: new AbortController() };
      live.add(entry);
      try {
        let owned = await agents.begin(agent, run, { worker, token: randomUUID() });
        while (owned !== undefined) owned = await runOnce(options, entry, owned);
      } catch (error) {
        onError(error, agent);
      } finally {
        live.delete(entry);
        if (live.size === 0) onEmpty?.();
        onRest();
      }
    },
    cancel(agent) {
      for (const entry of live) if (entry.agent === agent) entry.controller.abort(cancelled(agent));
    },
    loseAll() {
      for (const { agent, controller } of live) controller.abort(ownershipLost(agent));
    },
    async rest(graceMs) {
      if (live.size === 0) return;
      const timer = setTimeout(() => {
        for (const { controller } of live) controller.abort(drainedTooLong());
      }, graceMs);
      await new Promise<void>((resolve) => {
        onEmpty = resolve;
      });
      clearTimeout(timer);
    },
  };
}

/** Gives the run to continue with if the agent was woken while it ran. */
async function runOnce(options: LiveRunsOptions, live: Live, owned: OwnedRun): Promise<OwnedRun | undefined> {
  const { agents, schedule, run, draining, isCertain, onError, worker } = options;
  const { agent } = live;
  // A run that follows a cancelled one is not cancelled itself.
  if (live.controller.signal.aborted) live.controller = new AbortController();
  const { controller } = live;
  const { signal } = controller;
  const confirm = async (): Promise<void> => {
    signal.throwIfAborted();
    if (isCertain() || (await agents.owns(owned))) return;
    controller.abort(ownershipLost(agent));
    throw ownershipLost(agent);
  };
  let outcome: ActivationOutcome;
  try {
    outcome = await run({ agent, worker, signal, draining, confirm });
  } catch (error) {
    const isLost = signal.aborted || classifyFault(error) === "conflict";
    // Whoever cancelled the agent has seen to what follows. Nothing else that is thrown is done. Giving back has no effect on an agent
    // that another worker has, but a worker that was taken for dead may have begun this one after the others were taken from it.
    if (hasCode(signal.reason, "cancelled")) outcome = "done";
    else outcome = isLost ? "again" : { againAfterMs: thrownPauseMs };
    if (!isLost) onError(error, agent);
  }
  if (hasCode(signal.reason, "draining")) outcome = "again";
  if (outcome !== "done") {
    await schedule.release(owned, outcome === "again" ? 0 : outcome.againAfterMs);
    return undefined;
  }
  const next = await agents.end(owned);
  if (next === "ended" || next === "lost") return undefined;
  if (!draining.aborted) return next;
  await schedule.release(next);
  return undefined;
}

function hasCode(error: unknown, code: string): boolean {
  return isRetinueError(error) && error.code === code;
}

function cancelled(agent: string): RetinueError {
  return new RetinueError("cancelled", `The agent ${agent} was cancelled.`);
}

function drainedTooLong(): RetinueError {
  return new RetinueError("draining", "The worker shut down before the turn had ended.");
}

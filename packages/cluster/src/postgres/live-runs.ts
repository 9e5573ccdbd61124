import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { classifyFault } from "../classify-fault.ts";
import { type ActivationOutcome, ownershipLost, type RunActivation, thrownPauseMs } from "../store.ts";
import type { AgentTable, OwnedRun } from "./agent-table.ts";

export interface LiveRunsOptions {
  readonly worker: string;
  readonly agents: Pick<AgentTable, "owns" | "end" | "release">;
  readonly run: RunActivation;
  readonly draining: AbortSignal;
  /** True while no one can have taken over, because this worker has reported a moment ago. */
  readonly isCertain: () => boolean;
  readonly onError: (error: unknown, agent: string) => void;
  /** A slot is free again. */
  readonly onEnd: () => void;
}

/** The agents that run in this process. */
export interface LiveRuns {
  readonly size: number;
  has(run: Pick<OwnedRun, "agent" | "token">): boolean;
  /** Runs an agent until it rests; never throws. */
  start(run: OwnedRun): Promise<void>;
  cancel(agent: string): void;
  /** Aborts everything, because others have taken over. */
  abortAll(): void;
  /** Resolves when nothing runs; what still does after the time is aborted and given back. */
  settle(graceMs: number): Promise<void>;
}

interface Live {
  readonly agent: string;
  readonly token: string;
  controller: AbortController;
}

export function createLiveRuns(options: LiveRunsOptions): LiveRuns {
  const { onError, onEnd } = options;
  const live = new Set<Live>();
  let onEmpty: (() => void) | undefined;

  return {
    get size() {
      return live.size;
    },
    has: ({ agent, token }) => [...live].some((entry) => entry.agent === agent && entry.token === token),
    async start(run) {
      const { agent, token } = run;
      const entry = { agent, token, controller: new AbortController() };
      live.add(entry);
      try {
        for (let next: OwnedRun | undefined = run; next !== undefined; )
          next = await runOnce(options, entry, next);
      } catch (error) {
        onError(error, agent);
      } finally {
        live.delete(entry);
        if (live.size === 0) onEmpty?.();
        onEnd();
      }
    },
    cancel(agent) {
      const reason = new RetinueError("cancelled", `The agent ${agent} was cancelled.`);
      for (const entry of live) if (entry.agent === agent) entry.controller.abort(reason);
    },
    abortAll() {
      for (const { agent, controller } of live) controller.abort(ownershipLost(agent));
    },
    async settle(graceMs) {
      if (live.size === 0) return;
      const timer = setTimeout(() => {
        const reason = new RetinueError("draining", "The worker shut down before the turn had ended.");
        for (const { controller } of live) controller.abort(reason);
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
  const { agents, run, draining, isCertain, onError, worker } = options;
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
    // that another worker has.
    if (hasCode(signal.reason, "cancelled")) outcome = "done";
    else outcome = isLost ? "again" : { againAfterMs: thrownPauseMs };
    if (!isLost) onError(error, agent);
  }
  if (hasCode(signal.reason, "draining")) outcome = "again";
  if (outcome !== "done") {
    await agents.release(owned, outcome === "again" ? 0 : outcome.againAfterMs);
    return undefined;
  }
  const next = await agents.end(owned);
  if (next === "ended" || next === "lost") return undefined;
  if (!draining.aborted) return next;
  await agents.release(next);
  return undefined;
}

function hasCode(error: unknown, code: string): boolean {
  return isRetinueError(error) && error.code === code;
}

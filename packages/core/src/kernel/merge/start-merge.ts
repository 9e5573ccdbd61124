import { createReplayLog } from "@retinue/base/foundation/replay-log.ts";
import type { VerifyInput } from "@retinue/config/agents/verify-checks.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { MergeEvent, MergeQueue } from "../../protocol/merge-step.ts";
import type { Stopwatch } from "../../tasks/watch-run.ts";
import type { AgentServices } from "../agent/equip-agent.ts";
import { checkOptions } from "../options/check-options.ts";
import type { AgentHost } from "../run-handle.ts";

/** How the changes of children are brought back. */
export interface MergeOptions {
  /** The branch that is advanced, commit by commit; one made for the session when absent. It must not be checked out anywhere. */
  readonly into?: string | undefined;
  /**
   * The checks that must pass on each commit, as in `verify`; `[]`: none. Absent: those of the main agent and of the types of
   * the children, as settings and definitions name them.
   */
  readonly checks?: VerifyInput | undefined;
  /** Only these children, by id, the beginning of one, name or branch; also those that did not end well. */
  readonly only?: readonly string[] | undefined;
  /** The agent that a conflict goes to once; `merge-resolver` when absent, false: none. */
  readonly resolver?: string | false | undefined;
  /** Brings the branch that is checked out forward when everything is in and nothing here is changed. */
  readonly apply?: boolean | undefined;
  /** Changes nothing: the queue as it would be taken. */
  readonly dryRun?: boolean | undefined;
  /** Merges nothing, and removes worktree and branch of these children with everything that is in them. */
  readonly discard?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A merge in progress. */
export interface MergeHandle {
  /** The queue as it stands at the end. Rejects where the merge could not be begun or continued. */
  readonly result: Promise<MergeQueue>;
  /** Every step, from the start however late you iterate. */
  readonly events: AsyncIterable<MergeEvent>;
  /** Ends it between two steps; another merge continues. */
  stop(): Promise<MergeQueue>;
}

/** What a merge needs of the session that carries it out. */
export interface MergeParts {
  readonly services: AgentServices;
  /** The main agent, whose rules hold. */
  readonly plan: AgentPlan;
  readonly stopwatch: Stopwatch;
  readonly host: AgentHost;
}

export interface MergeStart {
  readonly parts: MergeParts | Promise<MergeParts>;
  /** The session whose children are merged: an id; or what a person wrote to name one, and absent for the newest. */
  readonly session: { readonly id: string } | { readonly written: string | undefined };
  /** The end of those who carry it out. */
  readonly end: AbortSignal;
}

export function startMerge(
  taker: "session.merge" | "merge",
  { parts, session, end }: MergeStart,
  options: MergeOptions = {},
): MergeHandle {
  checkOptions(taker, options);
  const stopped = new AbortController();
  const signals = [end, stopped.signal, ...(options.signal === undefined ? [] : [options.signal])];
  const log = createReplayLog<MergeEvent>();
  const run = async (): Promise<MergeQueue> => {
    const [{ runMerge }, found] = await Promise.all([import("./run-merge.ts"), parts]);
    return runMerge(
      found,
      { ...options, session },
      { signal: AbortSignal.any(signals), emit: (event) => void log.push(event) },
    );
  };
  const result = run();
  result.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  return {
    result,
    events: log,
    stop() {
      stopped.abort();
      return result;
    },
  };
}

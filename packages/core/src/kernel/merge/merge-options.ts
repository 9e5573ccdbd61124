import type { VerifyInput } from "@retinue/config/settings/verify-checks.ts";
import type { MergeEvent, MergeQueue } from "../../protocol/merge-step.ts";

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
  /** The queue as it is at the end. Rejects where the merge could not be started or continued. */
  readonly result: Promise<MergeQueue>;
  /** Every step, from the start however late you iterate. */
  readonly events: AsyncIterable<MergeEvent>;
  /** Ends it between two steps; another merge continues. */
  stop(): Promise<MergeQueue>;
}

/** The option `integrate` of a run: true, or how. */
export type IntegrateOption = boolean | Omit<MergeOptions, "signal" | "dryRun" | "discard">;

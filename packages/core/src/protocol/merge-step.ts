import type { CheckRun, ReceiptStatus } from "../conversation/receipt.ts";

/**
 * Everything that happens while the changes of children are brought back, in the order in which it happens: what is written
 * down of a merge, and what viewers of it read. A step ending in `-ing` is written before the action, its other half after.
 */
export type MergeStep =
  | {
      readonly type: "started";
      readonly sessionId: string;
      /** The integration branch, and the commit it is at. */
      readonly into: string;
      readonly from: string;
      readonly checks: readonly string[];
      readonly children: readonly MergeChild[];
    }
  /** The branch that it begins at has moved, so what was integrated is put on top of that again. */
  | { readonly type: "rebuilding" | "rebuilt"; readonly from: string; readonly to: string }
  /** Its uncommitted changes are committed; it has changed these files since `base`. */
  | ({ readonly type: "taken"; readonly base: string; readonly files: readonly string[] } & OfChild)
  | ({ readonly type: "conflicted"; readonly onto: string; readonly files: readonly string[] } & OfChild)
  | ({ readonly type: "resolving"; readonly onto: string; readonly resolver: string } & OfChild)
  | ({
      readonly type: "resolved";
      readonly onto: string;
      readonly resolver: string;
      /** The id of the agent that worked on it. */
      readonly by?: string;
      /** The changes on top of `onto`; absent where the resolver did not manage. */
      readonly commit?: string;
      readonly reason?: string;
    } & OfChild)
  | ({ readonly type: "checking"; readonly commit: string } & OfChild)
  | ({
      readonly type: "checked";
      readonly commit: string;
      readonly status: ReceiptStatus;
      readonly checks: readonly CheckRun[];
    } & OfChild)
  | ({ readonly type: "advancing" | "advanced"; readonly from: string; readonly to: string } & OfChild)
  /** It has changed nothing, or its changes are in the integration branch already. */
  | ({ readonly type: "empty"; readonly reason: string } & OfChild)
  | ({
      readonly type: "left";
      readonly because: LeftBecause;
      readonly reason: string;
      /** How a person continues by hand. */
      readonly commands: readonly string[];
    } & Partial<OfChild> & { readonly agent: string })
  /** The person's branch. */
  | {
      readonly type: "applying" | "applied";
      readonly branch: string;
      readonly from: string;
      readonly to: string;
    }
  | { readonly type: "not-applied"; readonly reason: string; readonly commands: readonly string[] }
  /** Its worktree and branch are gone; `tip` is the last commit. */
  | ({ readonly type: "removed" | "discarded"; readonly branch: string } & OfChild)
  | { readonly type: "ended"; readonly status: MergeStatus };

interface OfChild {
  readonly agent: string;
  /** The last commit of the child's branch. */
  readonly tip: string;
}

export interface MergeChild {
  readonly agent: string;
  readonly agentType: string;
  readonly description: string;
  readonly branch: string;
}

export type LeftBecause = "conflict" | "failed-check" | "not-ended" | "failed" | "submodule" | "unusable";

/**
 * `merged`: all is in the person's branch; `integrated`: all is in the integration branch; `partial`: something was left;
 * `nothing`: there was nothing to merge; `stopped`: it was interrupted, and the next merge continues.
 */
export type MergeStatus = "merged" | "integrated" | "partial" | "nothing" | "stopped";

/** A step as it is kept, with its time in milliseconds since 1970. */
export type MergeEvent = MergeStep & { readonly at: number };

/** One child in the queue. */
export interface MergeEntry extends MergeChild {
  readonly state:
    | "waiting"
    | "rebasing"
    | "resolving"
    | "checking"
    | "integrated"
    | "empty"
    | "left"
    | "merged"
    | "discarded";
  readonly files?: readonly string[];
  /** The last commit of its branch. */
  readonly tip?: string;
  /** Its changes on the integration branch. */
  readonly commit?: string;
  readonly because?: LeftBecause;
  readonly reason?: string;
  readonly commands?: readonly string[];
  readonly checks?: readonly CheckRun[];
  /** Who resolved its conflict. */
  readonly resolver?: string;
}

/** The state of a merge: what its steps add up to. */
export interface MergeQueue {
  readonly sessionId: string;
  readonly into: string;
  readonly checks: readonly string[];
  readonly entries: readonly MergeEntry[];
  /** The person's branch was brought forward. */
  readonly applied?: { readonly branch: string; readonly from: string; readonly to: string };
  readonly notApplied?: { readonly reason: string; readonly commands: readonly string[] };
  /** Absent while it runs. */
  readonly status?: MergeStatus;
}

export const emptyQueue: MergeQueue = { sessionId: "", into: "", checks: [], entries: [] };

/** The queue after one more step. Pure, so that every viewer shows the same. */
export function foldMerge(queue: MergeQueue, step: MergeStep): MergeQueue {
  switch (step.type) {
    case "started": {
      const { sessionId, into, checks, children } = step;
      const known = new Map(queue.entries.map((entry) => [entry.agent, entry]));
      // The outcome of one in an earlier round is shown until this one has come to it.
      const entries = children.map((child): MergeEntry => {
        const before = known.get(child.agent);
        const isIn = before?.state === "integrated" || before?.state === "empty";
        return isIn ? { ...before, ...child } : { ...child, state: "waiting" };
      });
      return { sessionId, into, checks, entries };
    }
    case "rebuilding":
      return {
        ...queue,
        entries: queue.entries.map((entry) =>
          entry.state === "integrated" ? { ...entry, state: "waiting" } : entry,
        ),
      };
    case "rebuilt":
      return queue;
    case "applying":
      return queue;
    case "applied":
      return { ...queue, applied: { branch: step.branch, from: step.from, to: step.to } };
    case "not-applied":
      return { ...queue, notApplied: { reason: step.reason, commands: step.commands } };
    case "ended":
      return { ...queue, status: step.status };
    default:
      return {
        ...queue,
        entries: queue.entries.map((entry) =>
          entry.agent === step.agent ? { ...untroubled(entry, step), ...changeOf(step) } : entry,
        ),
      };
  }
}

/** What kept it out in an earlier round is over once it is in. */
function untroubled(entry: MergeEntry, { type }: StepOfChild): MergeEntry {
  if (entry.because === undefined || (type !== "advanced" && type !== "empty")) return entry;
  const { because: _because, reason: _reason, commands: _commands, ...rest } = entry;
  return rest;
}

type StepOfChild = Extract<MergeStep, { readonly agent: string }>;

function changeOf(step: StepOfChild): Partial<MergeEntry> {
  switch (step.type) {
    case "taken":
      return { state: "rebasing", files: step.files, tip: step.tip };
    case "conflicted":
      return { state: "rebasing", reason: `conflict in ${step.files.join(", ")}` };
    case "resolving":
      return { state: "resolving", resolver: step.resolver };
    case "resolved":
      return step.commit === undefined ? {} : { state: "rebasing" };
    case "checking":
      return { state: "checking", commit: step.commit };
    case "checked":
      return { checks: step.checks };
    case "advancing":
      return {};
    case "advanced":
      return { state: "integrated", commit: step.to };
    case "empty":
      return { state: "empty", reason: step.reason, tip: step.tip };
    case "left":
      return { state: "left", because: step.because, reason: step.reason, commands: step.commands };
    case "removed":
      return { state: "merged" };
    case "discarded":
      return { state: "discarded", tip: step.tip };
  }
}

/** What a merge that was started before has come to, as far as a later one needs it. */
export interface EarlierMerge {
  /** Where the changes of a child are, on top of which commit: integrated, or resolved and not integrated yet. */
  readonly placed: ReadonlyMap<string, PlacedChanges>;
  /** Of which children the conflict went to a resolver that did not manage: `agent tip`. */
  readonly given: ReadonlySet<string>;
  /** The checks that each commit has passed. */
  readonly passed: ReadonlyMap<string, ReadonlySet<string>>;
  /** The person's branch was being brought forward. */
  readonly applying?: { readonly branch: string; readonly from: string; readonly to: string };
  readonly queue: MergeQueue;
}

export interface PlacedChanges {
  readonly tip: string;
  readonly onto: string;
  readonly commit: string;
}

export function foldEarlierMerge(steps: readonly MergeStep[]): EarlierMerge {
  const placed = new Map<string, PlacedChanges>();
  const given = new Set<string>();
  const passed = new Map<string, ReadonlySet<string>>();
  let applying: EarlierMerge["applying"];
  for (const step of steps) {
    // One that could not be started has not tried.
    if (step.type === "resolved" && step.commit === undefined && step.by !== undefined)
      given.add(`${step.agent} ${step.tip}`);
    if (step.type === "resolved" && step.commit !== undefined)
      placed.set(step.agent, { tip: step.tip, onto: step.onto, commit: step.commit });
    if (step.type === "checked")
      passed.set(step.commit, new Set(step.checks.flatMap((check) => (check.passed ? check.run : []))));
    // Whether the branch was moved is seen from the branch.
    if (step.type === "advancing")
      placed.set(step.agent, { tip: step.tip, onto: step.from, commit: step.to });
    if (step.type === "removed" || step.type === "discarded") placed.delete(step.agent);
    if (step.type === "applying") applying = { branch: step.branch, from: step.from, to: step.to };
    if (step.type === "applied" || step.type === "not-applied") applying = undefined;
  }
  const queue = steps.reduce(foldMerge, emptyQueue);
  return { placed, given, passed, queue, applying };
}

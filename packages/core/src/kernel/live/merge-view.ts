import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { emptyQueue, foldMerge, type MergeEntry, type MergeQueue } from "../../protocol/merge-step.ts";
import { mergeJournalFile, readMergeSteps } from "../merge/merge-journal.ts";

/** The merge of a session's children in a line. */
export interface MergeSummary extends Pick<MergeQueue, "into"> {
  readonly children: number;
  /** Nothing more is to be done about them: integrated, merged or without changes. */
  readonly done: number;
  readonly left: number;
  readonly state: MergeViewState;
}

/** `interrupted`: its process ended before it did, and the next merge continues. */
export type MergeViewState = "running" | "interrupted" | NonNullable<MergeQueue["status"]>;

/** The merge of a session's children as people follow it. */
export interface MergeView {
  readonly queue: MergeQueue;
  readonly summary: MergeSummary;
  /** The last step, in milliseconds since 1970. */
  readonly changedAt?: number;
}

/** Undefined where the children of this session were never merged. */
export async function readMerge(transcripts: string, sessionId: string): Promise<MergeView | undefined> {
  const file = mergeJournalFile(transcripts, sessionId);
  // Asked first: what the process wrote before it ended is still read.
  const isLive = hasLiveOwner(file);
  const steps = await readMergeSteps(file);
  const last = steps.at(-1);
  if (last === undefined) return undefined;
  const queue = steps.reduce(foldMerge, emptyQueue);
  const { at } = last as { readonly at?: unknown }; // Every step is kept with its time; another program may have left it out.
  return { queue, summary: summaryOf(queue, isLive), ...(typeof at === "number" ? { changedAt: at } : {}) };
}

const doneStates: ReadonlySet<MergeEntry["state"]> = new Set(["integrated", "merged", "empty", "discarded"]);

function summaryOf({ entries, into, status }: MergeQueue, isLive: boolean): MergeSummary {
  return {
    into,
    children: entries.length,
    done: entries.filter(({ state }) => doneStates.has(state)).length,
    left: entries.filter(({ state }) => state === "left").length,
    state: status ?? (isLive ? "running" : "interrupted"),
  };
}

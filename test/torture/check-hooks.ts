import { existsSync, readFileSync } from "node:fs";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";

/** The events of a child that hooks were about to be notified of, in order. */
export function marksOf(records: readonly JsonRecord[]): readonly string[] {
  return records.flatMap(({ type, event }) => (type === "retinue-told" ? [String(event)] : []));
}

/** The number of the mark that was the last word before a kill: it is not known whether its hook ran. */
export function openMark(records: readonly JsonRecord[]): number | undefined {
  const last = records.findLast(({ type, runEnding }) => shownTypes.has(type) || runEnding !== undefined);
  return last?.type === "retinue-told" ? marksOf(records).length - 1 : undefined;
}

/** What is behind a mark in the same run shows that its hook had ended. */
const shownTypes: ReadonlySet<unknown> = new Set(["retinue-told", "assistant", "user"]);

export interface HookCount {
  readonly starts: number;
  /** Marks behind which a kill came before their hook could run. */
  readonly unheard: number;
}

export interface HookFacts {
  readonly agentId: string;
  readonly log: string;
  /** Numbers of marks that were the last word before a kill. */
  readonly unsure: ReadonlySet<number>;
}

/**
 * Compares what hooks received about a child with its transcript: each start has one stop, each came exactly once, and at most
 * once where a kill came right behind its mark. Throws when that is not so.
 */
export function checkHooks(records: readonly JsonRecord[], { agentId, log, unsure }: HookFacts): HookCount {
  const marks = marksOf(records);
  const isOdd = marks.some((event, index) => event !== (index % 2 === 0 ? "SubagentStart" : "SubagentStop"));
  if (isOdd || marks.length % 2 === 1)
    throw new Error(`${agentId} does not have one stop for each start: ${marks.join(", ")}`);
  const received = readHeard(log, agentId);
  for (const event of ["SubagentStart", "SubagentStop"]) {
    const count = received.filter((name) => name === event).length;
    const most = marks.filter((name) => name === event).length;
    const sure = marks.filter((name, index) => name === event && !unsure.has(index)).length;
    if (count > most || count < sure)
      throw new Error(`${agentId}: ${event} was heard ${count} times, not ${sure} to ${most} times.`);
  }
  return { starts: marks.length / 2, unheard: marks.length - received.length };
}

function readHeard(log: string, agentId: string): readonly string[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, "utf8").trim().split("\n");
  return lines.map((line) => line.split(" ")).flatMap(([event = "", id]) => (id === agentId ? [event] : []));
}

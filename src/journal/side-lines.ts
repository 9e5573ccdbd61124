import type { RunEvent } from "../conversation/run-event.ts";
import type { JournaledPlan } from "./journaled-plan.ts";
import {
  intentsLine,
  outcomeLine,
  planLine,
  type ReportedEvent,
  reportedLine,
  requestLine,
} from "./plan-line.ts";
import type { TranscriptFacts } from "./transcript-facts.ts";

/** What is written beside the conversation, for those who find it cut off. */
export interface SideLines {
  /** Lines that belong into the same write as the next ones of the conversation. */
  take(event?: RunEvent): readonly string[];
  /** Writes the result of a call down while others of the same answer still run. */
  finish(event: Extract<RunEvent, { type: "call-finished" }>): void;
  plan(plan: JournaledPlan, when: "now" | "with-next"): void;
  reported(event: ReportedEvent): void;
  /** Has lines of others written behind the next ones of the conversation. */
  beside(lines: readonly object[]): void;
}

export interface SideLineOptions {
  readonly log: { append(lines: readonly string[]): number };
  readonly now: () => number;
  readonly facts: () => TranscriptFacts;
}

export function createSideLines({ log, now, facts }: SideLineOptions): SideLines {
  const open = new Set<string>();
  const waiting: object[] = [];
  let plan: JournaledPlan | undefined;
  const about = () => ({ ...facts(), timestamp: new Date(now()).toISOString() });
  const write = (line: object): void => void log.append([JSON.stringify(line)]);
  return {
    take(event) {
      const intents = event?.type === "assistant-answered" ? (event.intents ?? []) : [];
      if (event?.type === "assistant-answered") open.clear();
      for (const { callId } of intents) open.add(callId);
      const lines = [
        ...(intents.length === 0 ? [] : [intentsLine(about(), intents)]),
        ...(event?.type === "assistant-answered" && event.request !== undefined
          ? [requestLine(about(), event.request)]
          : []),
        ...(plan === undefined ? [] : [planLine(about(), plan)]),
        ...waiting.splice(0),
      ];
      plan = undefined;
      return lines.map((line) => JSON.stringify(line));
    },
    /** The last call of an answer needs no line of its own: the results of all are written next. */
    finish({ call: { id }, isError, content }) {
      if (!open.delete(id) || open.size === 0 || content === undefined) return;
      write(outcomeLine(about(), { id, isError, content }));
    },
    plan(decided, when) {
      if (when === "now") write(planLine(about(), decided));
      else plan = decided;
    },
    reported: (event) => write(reportedLine(about(), event)),
    beside: (lines) => void waiting.push(...lines),
  };
}

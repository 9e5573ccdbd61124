import type { ModelRequest } from "../models/model.ts";
import type { BareDifference, Difference } from "./difference.ts";
import type { RecordedAgent, RecordedRun, Recording } from "./recording.ts";
import { type AgentNow, type ReplayedRun, replayRun } from "./replay-run.ts";

export interface ReplayOptions {
  /** What an agent would be given now; absent: everything as it was recorded. */
  readonly now?: (agent: RecordedAgent, run: RecordedRun) => Promise<AgentNow>;
  /** Calls about which rules decide otherwise now. */
  readonly decisions?: (agent: RecordedAgent, run: RecordedRun) => Promise<readonly DecisionDifference[]>;
  /** Sees each request as it would be sent. */
  readonly onRequest?: (request: ModelRequest, agentId: string) => void;
}

export type DecisionDifference = BareDifference & { readonly message: string };

/** The outcome of replaying a session. */
export interface ReplayReport {
  readonly sessionId: string;
  readonly agents: number;
  readonly runs: number;
  readonly requests: {
    readonly made: number;
    readonly same: number;
    /** Those that nothing was recorded to compare with, as in transcripts of other programs. */
    readonly uncompared: number;
  };
  /** US dollars: as recorded, and for the same tokens by today's prices. */
  readonly costUsd: { readonly recorded: number; readonly now: number };
  /** In the order of the record; the first one of an agent is where it diverged. */
  readonly differences: readonly Difference[];
  /** What of the record cannot be read any more, each as one sentence: nothing is known about that part. */
  readonly damage: readonly string[];
}

/** Why a report without differences still does not show that the session would run as it did; empty where it does. */
export function findGaps({ requests, damage }: Pick<ReplayReport, "requests" | "damage">): readonly string[] {
  const { made, same, uncompared } = requests;
  const other = made - uncompared - same;
  return [
    ...damage,
    ...(made === 0 ? ["Nothing was compared: the record has no answer of a model."] : []),
    ...(uncompared === 0
      ? []
      : [`${counted(uncompared)} could not be compared: the record does not contain what was sent.`]),
    ...(other === 0
      ? []
      : [
          `${counted(other)} ${other === 1 ? "is" : "are"} not the same as recorded; the record cannot show how.`,
        ]),
  ];
}

function counted(number: number): string {
  return number === 1 ? "1 request" : `${number} requests`;
}

/** Replays all agents of a session, one after the other in the order of the record. Uses no model and no network. */
export async function replayRecording(
  recording: Recording,
  options: ReplayOptions = {},
): Promise<ReplayReport> {
  const differences: Difference[] = [];
  const replayed: ReplayedRun[] = [];
  for (const agent of recording.agents) {
    const seen = new Set<string>();
    for (const [index, run] of agent.runs.entries()) {
      const now = (await options.now?.(agent, run)) ?? {};
      const turnsBefore = countTurns(agent, index);
      const result = await replayRun({ recording, agent, run, turnsBefore, now });
      for (const { request } of result.requests) options.onRequest?.(request, agent.id);
      replayed.push(result);
      const decisions = (await options.decisions?.(agent, run)) ?? [];
      const about = { agentId: agent.id, agent: agent.name };
      const found = [...result.differences, ...decisions.map((decision) => ({ ...decision, ...about }))];
      // A changed prompt is in every request after it, and is reported once.
      differences.push(...found.filter((difference) => isNew(seen, difference)));
    }
  }
  const requests = replayed.flatMap((run) => run.requests);
  const cost = replayed.reduce(
    (sum, { costUsd: cost }) => ({ recorded: sum.recorded + cost.recorded, now: sum.now + cost.now }),
    { recorded: 0, now: 0 },
  );
  return {
    sessionId: recording.sessionId,
    agents: recording.agents.length,
    runs: replayed.length,
    requests: {
      made: requests.length,
      same: requests.filter(({ isSame }) => isSame === true).length,
      uncompared: requests.filter(({ isSame }) => isSame === undefined).length,
    },
    costUsd: cost,
    differences: [...differences, ...costDifference(cost)],
    damage: recording.damage ?? [],
  };
}

/** Answers of an agent before a run, and of those the ones to the same prompt. */
export function countTurns(
  { runs }: RecordedAgent,
  index: number,
): { readonly all: number; readonly ofPrompt: number } {
  const turns = (run: RecordedRun): number => run.steps.filter(({ type }) => type === "answer").length;
  const before = runs.slice(0, index);
  const plan = runs[index]?.plan;
  // A run without an end that the same process continued with was another part of the same prompt.
  const parts = before.slice(
    before.findLastIndex((run) => run.ending !== undefined || run.plan !== plan) + 1,
  );
  const sum = (list: readonly RecordedRun[]): number => list.reduce((count, run) => count + turns(run), 0);
  return { all: sum(before), ofPrompt: sum(parts) };
}

function isNew(seen: Set<string>, { kind, title, lines }: Difference): boolean {
  const key = JSON.stringify([kind, title, lines]);
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

/** A millionth of a dollar is the rounding of sums. */
const smallestCost = 1e-6;

function costDifference({ recorded, now }: ReplayReport["costUsd"]): readonly Difference[] {
  if (Math.abs(recorded - now) < smallestCost) return [];
  const lines = [`- $${recorded.toFixed(6)}`, `+ $${now.toFixed(6)}`];
  return [
    { kind: "cost", agentId: "main", agent: "all agents", title: "the cost for the same tokens", lines },
  ];
}

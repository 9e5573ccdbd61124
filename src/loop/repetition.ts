import { createHash } from "node:crypto";
import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";

/** What was seen of the newest rounds of calls, as fingerprints; the newest last. */
export interface RepetitionState {
  readonly rounds: readonly string[];
}

export const noRepetition: RepetitionState = { rounds: [] };

/** The calls of one answer with what came of them. */
export interface CallRound {
  readonly calls: readonly ToolUseBlock[];
  readonly results: readonly ToolResultBlock[];
  /** The ids of calls that asked for something which still goes on; asking again is how one waits. */
  readonly pending?: ReadonlySet<string>;
}

export interface RepetitionFinding {
  readonly state: RepetitionState;
  /** How often the newest round, or the newest pair of rounds, came in a row; 1 when it is new. */
  readonly times: number;
}

/** The agent is told at the first number, and its run ended at the second. */
export const repetitionLimits = { told: 3, ended: 6 } as const;

/** A round is every call of one answer: the same calls with the same results, or two such rounds taking turns. */
const longestPeriod = 2;
const kept = longestPeriod * (repetitionLimits.ended + 1);

/** Pure: the state before and a round give the state after and how often that round has come. */
export function foldRound(state: RepetitionState, round: CallRound): RepetitionFinding {
  if (round.calls.some(({ id }) => round.pending?.has(id) === true)) return { state: noRepetition, times: 1 };
  const rounds = [...state.rounds, fingerprint(round)].slice(-kept);
  const counts = Array.from({ length: longestPeriod }, (_, index) => timesInRow(rounds, index + 1));
  return { state: { rounds }, times: Math.max(...counts) };
}

/** How often the last `period` rounds stand behind each other at the end. */
function timesInRow(rounds: readonly string[], period: number): number {
  let same = 0;
  for (let at = rounds.length - 1; at >= period && rounds[at] === rounds[at - period]; at -= 1) same += 1;
  return Math.floor(same / period) + 1;
}

/** Ids differ from call to call and the order within one answer means nothing, so neither counts. */
function fingerprint({ calls, results }: CallRound): string {
  const byId = new Map(results.map((result) => [result.tool_use_id, result]));
  const parts = calls.map(({ id, name, input }) => {
    const result = byId.get(id);
    return canonical([name, input, result?.content ?? null, result?.is_error === true]);
  });
  return createHash("sha256")
    .update(JSON.stringify([...new Set(parts)].sort()))
    .digest("base64");
}

/** JSON with the keys of objects in one order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, part]) => `${JSON.stringify(key)}:${canonical(part)}`).join(",")}}`;
}

/** The results with a word to the agent at the end of the last one. */
export function withRepetitionNote(
  results: readonly ToolResultBlock[],
  times: number,
): readonly ToolResultBlock[] {
  const last = results.at(-1);
  if (last === undefined) return results;
  const note = `[You have made the same call with the same result ${times} times in a row. Making it again will change nothing: try another way, or say what you have and what is missing. After ${repetitionLimits.ended} times the run is ended.]`;
  const content =
    typeof last.content === "string"
      ? `${last.content}\n\n${note}`
      : [...last.content, { type: "text" as const, text: note }];
  return [...results.slice(0, -1), { ...last, content }];
}

import { hash } from "node:crypto";
import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { repeatsOf } from "../tools/json-schema-of.ts";
import type { Tool } from "../tools/tool.ts";
import { findTool } from "./authorize-call.ts";
import { type CallResults, callTools } from "./call-tools.ts";
import type { LimitReached, LoopPorts } from "./loop-ports.ts";
import type { Tally } from "./tally.ts";

/** The answers to all calls of one message, and the limit that ends the run after them. */
interface Round {
  readonly content: readonly ToolResultBlock[];
  readonly data: CallResults["data"];
  readonly limit?: LimitReached;
}

interface RoundOptions {
  readonly ports: LoopPorts;
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

/** Each answer that is cut off costs as much as the longest whole one, so the model gets only so many in a row. */
const maxCutOff = 6;

/** Runs the calls of one message after another's, within the limits, and notices when they repeat. */
export function createRounds({ ports, tally, signal }: RoundOptions) {
  const maxRepeats = ports.limits?.maxRepeats ?? defaultMaxRepeats;
  let seen = noRepetition;
  let cutInRow = 0;
  return async function* runRound(
    calls: readonly ToolUseBlock[],
    { isCut }: { readonly isCut: boolean },
  ): AsyncGenerator<RunEvent, Round> {
    const whole = isCut ? calls.slice(0, -1) : calls;
    const { granted, limit } = (await ports.limits?.takeCalls(whole.length)) ?? {
      granted: whole.length,
    };
    const run = whole.slice(0, granted);
    const results = yield* callTools(run, ports, signal);
    tally.addCalls(calls.length, results.denials);
    const refused = limit === undefined ? [] : whole.slice(granted).map((call) => notRun(call, limit));
    // The answer was cut by the output limit in the middle of this call, so its input cannot be trusted.
    const answered = [
      ...results.blocks,
      ...refused,
      ...calls.slice(whole.length).map((call): ToolResultBlock => {
        const content =
          "This call was cut off by the output limit and was not run. Try again with a shorter input.";
        return { type: "tool_result", tool_use_id: call.id, content, is_error: true };
      }),
    ];
    cutInRow = isCut ? cutInRow + 1 : 0;
    const roundKind = isCut ? "work" : classifyRound(run, results, ports);
    const { state, repetition } = foldRound(seen, { calls: run, results: answered, roundKind });
    seen = state;
    const last = run.at(-1);
    const isNoticed = last !== undefined && repetition.times >= repetitionNoticed;
    if (isNoticed) yield { type: "loop-noticed", call: last, times: repetition.times };
    const isOver = isNoticed && repetition.isUnproductive && repetition.times >= maxRepeats;
    const reached =
      limit ??
      (isOver
        ? { reason: "loop" as const, error: describeRepetition(repetition, "The agent") }
        : undefined) ??
      (cutInRow >= maxCutOff ? tooOftenCut : undefined);
    return {
      content: isNoticed ? withRepetitionNote(answered, repetition, maxRepeats) : answered,
      data: results.data,
      limit: reached,
    };
  };
}

const tooOftenCut: LimitReached = {
  reason: "max_tokens",
  error: `${maxCutOff} answers in a row were cut off by the output limit in the middle of a call.`,
};

/** One call that brings something makes the whole round work. */
function classifyRound(calls: readonly ToolUseBlock[], results: CallResults, ports: LoopPorts): RoundKind {
  const failed = new Set(
    results.blocks.flatMap(({ tool_use_id, is_error }) => (is_error === true ? [tool_use_id] : [])),
  );
  const natures = calls.map((call) => {
    const tool = findTool(call.name, ports);
    if (tool === undefined || results.notRun.has(call.id)) return "futile";
    if (Object.hasOwn(results.data, call.id) && tool.isPending?.(results.data[call.id]) === true)
      return "work";
    if (failed.has(call.id)) return isWayToWait(tool) ? "polling" : "futile";
    return isWayToWait(tool) || repeatsOf(tool) === "unsafe" ? "work" : "futile";
  });
  if (natures.includes("work")) return "work";
  return natures.includes("polling") ? "polling" : "futile";
}

/** A command or a server's tool may be asked again and again until something has happened. */
function isWayToWait({ effect, origin }: Tool): boolean {
  return effect === "execute" || origin === "mcp";
}

/** Every call needs an answer, also one that nothing was left for. */
function notRun(call: { readonly id: string }, { error }: LimitReached): ToolResultBlock {
  const content = `This call was not run. ${error}`;
  return { type: "tool_result", tool_use_id: call.id, content, is_error: true };
}

/**
 * What repeating the calls of one answer is. `futile`: they failed, or only look, so that doing it again brings nothing new.
 * `polling`: they ran a command or a server's tool and failed, which may be a way to wait. `work`: anything else.
 */
export type RoundKind = "futile" | "polling" | "work";

/** The calls of one answer with their outcomes. */
interface CallRound {
  readonly calls: readonly ToolUseBlock[];
  readonly results: readonly ToolResultBlock[];
  readonly roundKind: RoundKind;
}

/** What was seen of the newest rounds of calls; the newest last. */
interface RepetitionState {
  readonly rounds: readonly SeenRound[];
  /** For each period, how many of the newest rounds equal the one so far before them. */
  readonly equal: readonly number[];
}

interface SeenRound {
  readonly fingerprint: string;
  readonly roundKind: RoundKind;
}

/** A run of equal rounds, or of two rounds that take turns. */
interface Repetition {
  /** How often the round, or the pair of rounds, has come in a row; 1 when it is new. */
  readonly times: number;
  /** Rounds until the same one comes again. */
  readonly period: number;
  /** Calls in the newest round. */
  readonly calls: number;
  /** Whether it counts towards the limit that ends a run. */
  readonly isUnproductive: boolean;
}

const maxPeriod = 2;

export const noRepetition: RepetitionState = { rounds: [], equal: Array(maxPeriod).fill(0) };

/** The model is notified from this number on. */
const repetitionNoticed = 3;
/** Equal futile rounds after which a run ends, unless settings have another number. */
const defaultMaxRepeats = 30;

/** Pure: the state before and a round give the state after and what is repeated. */
export function foldRound(
  state: RepetitionState,
  round: CallRound,
): { readonly state: RepetitionState; readonly repetition: Repetition } {
  const calls = round.calls.length;
  if (round.roundKind === "work")
    return { state: noRepetition, repetition: { times: 1, period: 1, calls, isUnproductive: false } };
  const seen: SeenRound = { fingerprint: fingerprint(round), roundKind: round.roundKind };
  const equal = state.equal.map((count, at) =>
    state.rounds.at(-1 - at)?.fingerprint === seen.fingerprint ? count + 1 : 0,
  );
  const rounds = [...state.rounds, seen].slice(-maxPeriod);
  const counts = equal.map((count, at) => Math.floor(count / (at + 1)) + 1);
  const times = Math.max(...counts);
  const period = counts.indexOf(times) + 1;
  const isUnproductive = rounds.slice(-period).every(({ roundKind }) => roundKind === "futile");
  return { state: { rounds, equal }, repetition: { times, period, calls, isUnproductive } };
}

/** Ids differ from call to call and the order within one answer means nothing, so neither counts. */
function fingerprint({ calls, results }: CallRound): string {
  const byId = new Map(results.map((result) => [result.tool_use_id, result]));
  const parts = calls.map(({ id, name, input }) => {
    const result = byId.get(id);
    return canonical([name, input, result?.content ?? null, result?.is_error === true]);
  });
  return hash("sha256", JSON.stringify([...new Set(parts)].sort()), "base64");
}

/** JSON with the keys of objects in one order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, part]) => `${JSON.stringify(key)}:${canonical(part)}`).join(",")}}`;
}

/** What was repeated, as one true sentence. */
export function describeRepetition({ times, period, calls }: Repetition, agent: string): string {
  if (period > 1)
    return `${agent} made the same two rounds of calls in turn ${times} times, each with the same results.`;
  const what = calls === 1 ? "the same call" : `the same ${calls} calls`;
  return `${agent} made ${what} ${times} times in a row, with the same result${calls === 1 ? "" : "s"}.`;
}

/** The results with a word to the model at the end of the last one. */
export function withRepetitionNote(
  results: readonly ToolResultBlock[],
  repetition: Repetition,
  maxRepeats: number,
): readonly ToolResultBlock[] {
  const last = results.at(-1);
  if (last === undefined) return results;
  const ends = repetition.isUnproductive ? ` After ${maxRepeats} times the run ends.` : "";
  const advice =
    "If you are not waiting for something, try another way, or say what you have and what is missing.";
  const note = `[${describeRepetition(repetition, "You")} ${advice}${ends}]`;
  const content =
    typeof last.content === "string"
      ? `${last.content}\n\n${note}`
      : [...last.content, { type: "text" as const, text: note }];
  return [...results.slice(0, -1), { ...last, content }];
}

/** A result as the tool gave it, without the word to the model that a repetition put at its end. */
export function withoutRepetitionNote(result: ToolResultBlock): ToolResultBlock {
  const { content } = result;
  if (typeof content === "string") return { ...result, content: content.replace(notePattern, "") };
  const last = content.at(-1);
  const isNote = last?.type === "text" && notePattern.test(`\n\n${last.text}`);
  return isNote ? { ...result, content: content.slice(0, -1) } : result;
}

const notePattern = /\n\n\[You made the same [^\n]* what is missing\.(?: After \d+ times the run ends\.)?\]$/;

import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { repeatsOf } from "../tools/repeats-of.ts";
import type { Tool } from "../tools/tool.ts";
import { findTool } from "./authorize-call.ts";
import { type CallResults, callTools } from "./call-tools.ts";
import type { LimitReached, LoopPorts } from "./loop-ports.ts";
import {
  defaultMaxRepeats,
  describeRepetition,
  foldRound,
  noRepetition,
  type RoundNature,
  repetitionNoticed,
  withRepetitionNote,
} from "./repetition.ts";
import type { Tally } from "./tally.ts";

/** The answers to all calls of one message, and the limit that ends the run after them. */
export interface Round {
  readonly content: readonly ToolResultBlock[];
  readonly data: CallResults["data"];
  readonly limit?: LimitReached;
}

export interface RoundOptions {
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
    const answered = [...results.blocks, ...refused, ...calls.slice(whole.length).map(cutOff)];
    cutInRow = isCut ? cutInRow + 1 : 0;
    const nature = isCut ? "work" : natureOf(run, results, ports);
    const { state, repetition } = foldRound(seen, { calls: run, results: answered, nature });
    seen = state;
    const last = run.at(-1);
    const isNoticed = last !== undefined && repetition.times >= repetitionNoticed;
    if (isNoticed) yield { type: "loop-noticed", call: last, times: repetition.times };
    const isOver = isNoticed && repetition.isFutile && repetition.times >= maxRepeats;
    const reached =
      limit ??
      (isOver
        ? { reason: "loop" as const, error: describeRepetition(repetition, "The agent") }
        : undefined) ??
      (cutInRow >= maxCutOff ? tooOftenCut : undefined);
    return {
      content: isNoticed ? withRepetitionNote(answered, repetition, maxRepeats) : answered,
      data: results.data,
      ...(reached === undefined ? {} : { limit: reached }),
    };
  };
}

const tooOftenCut: LimitReached = {
  reason: "max_tokens",
  error: `${maxCutOff} answers in a row were cut off by the output limit in the middle of a call.`,
};

/** One call that brings something makes the whole round work. */
function natureOf(calls: readonly ToolUseBlock[], results: CallResults, ports: LoopPorts): RoundNature {
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

/** The answer was cut by the output limit in the middle of this call, so its input cannot be trusted. */
function cutOff(call: { readonly id: string }): ToolResultBlock {
  const content =
    "This call was cut off by the output limit and was not run. Try again with a shorter input.";
  return { type: "tool_result", tool_use_id: call.id, content, is_error: true };
}

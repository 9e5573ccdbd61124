import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { type CallResults, callTools } from "./call-tools.ts";
import type { LimitReached } from "./limit-reached.ts";
import type { LoopPorts } from "./loop-ports.ts";
import { foldRound, noRepetition, repetitionLimits, withRepetitionNote } from "./repetition.ts";
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

/** Runs the calls of one message after another's, within the limits, and notices when they go in a circle. */
export function createRounds({ ports, tally, signal }: RoundOptions) {
  let seen = noRepetition;
  return async function* runRound(
    calls: readonly ToolUseBlock[],
    { isCut }: { readonly isCut: boolean },
  ): AsyncGenerator<RunEvent, Round> {
    const whole = isCut ? calls.slice(0, -1) : calls;
    const { granted, limit } = ports.limits?.takeCalls(whole.length) ?? { granted: whole.length };
    const run = whole.slice(0, granted);
    const results = yield* callTools(run, ports, signal);
    tally.addCalls(calls.length, results.denials);
    const pending = pendingOf(run, results, ports);
    const cut = calls.slice(whole.length);
    const refused = limit === undefined ? [] : whole.slice(granted).map((call) => notRun(call, limit));
    const answered = [...results.blocks, ...refused, ...cut.map(cutOff)];
    // Where an input was cut is chance; that it is cut again and again is a circle.
    const seenCalls = [...run, ...cut.map((call) => ({ ...call, input: null }))];
    const found = foldRound(seen, { calls: seenCalls, results: answered, pending });
    seen = found.state;
    const last = [...run, ...cut].at(-1);
    const isTold = last !== undefined && found.times >= repetitionLimits.told;
    if (isTold) yield { type: "loop-noticed", call: last, times: found.times };
    return {
      content: isTold ? withRepetitionNote(answered, found.times) : answered,
      data: results.data,
      ...endOf(limit, isTold ? found.times : 0, last),
    };
  };
}

function endOf(
  limit: LimitReached | undefined,
  times: number,
  call: ToolUseBlock | undefined,
): Pick<Round, "limit"> {
  if (limit !== undefined) return { limit };
  if (times < repetitionLimits.ended) return {};
  const error = `The agent made the same call (${call?.name ?? ""}) with the same result ${times} times in a row.`;
  return { limit: { reason: "loop", error } };
}

function pendingOf(
  calls: readonly ToolUseBlock[],
  { data }: CallResults,
  { tools }: LoopPorts,
): ReadonlySet<string> {
  const pending = calls.filter(({ id, name }) => {
    const tool = tools.find((candidate) => candidate.name === name);
    return Object.hasOwn(data, id) && tool?.isPending?.(data[id]) === true;
  });
  return new Set(pending.map(({ id }) => id));
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

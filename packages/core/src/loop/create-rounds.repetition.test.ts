import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ToolResultBlock } from "../conversation/message.ts";
import {
  describeRepetition,
  foldRound,
  noRepetition,
  type RoundKind,
  withRepetitionNote,
} from "./create-rounds.ts";

let made = 0;

function round(input: unknown, result: string, more: { name?: string; roundKind?: RoundKind } = {}) {
  made += 1;
  const id = `call_${made}`;
  return {
    calls: [{ type: "tool_use" as const, id, name: more.name ?? "Read", input }],
    results: [{ type: "tool_result" as const, tool_use_id: id, content: result }],
    roundKind: more.roundKind ?? "futile",
  };
}

function timesOf(rounds: readonly ReturnType<typeof round>[]): number[] {
  let state = noRepetition;
  return rounds.map((each) => {
    const found = foldRound(state, each);
    state = found.state;
    return found.repetition.times;
  });
}

const a = () => round({ file: "a", limit: 1 }, "same");
const b = () => round({ file: "b" }, "other");

describe("[LIM-6] a call that comes again and again with the same result", () => {
  test.each([
    ["is counted", [a(), a(), a(), a()], [1, 2, 3, 4]],
    ["whatever the order of its keys", [a(), round({ limit: 1, file: "a" }, "same")], [1, 2]],
    ["not when the result differs", [a(), round({ file: "a", limit: 1 }, "new"), a()], [1, 1, 1]],
    ["not when the input differs", [a(), round({ file: "a", limit: 2 }, "same")], [1, 1]],
    ["not when the tool differs", [a(), round({ file: "a", limit: 1 }, "same", { name: "Grep" })], [1, 1]],
    ["begins anew after another call", [a(), a(), b(), a()], [1, 2, 1, 1]],
    ["is seen in pairs that take turns", [a(), b(), a(), b(), a(), b()], [1, 1, 1, 2, 2, 3]],
    [
      "not when it is work",
      Array.from({ length: 8 }, () => round({ id: 1 }, "running", { roundKind: "work" })),
      [1, 1, 1, 1, 1, 1, 1, 1],
    ],
  ])("%s", (_what, rounds, expected) => {
    expect(timesOf(rounds)).toEqual(expected);
  });

  test("keeps no more than it needs, however long the run", () => {
    let state = noRepetition;
    for (let turn = 0; turn < 500; turn += 1) state = foldRound(state, round({ turn }, "x")).state;
    expect(state.rounds.length).toBeLessThan(20);
  });

  test("any inputs that all differ are never taken for a loop", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer(), { maxLength: 30 }), (inputs) => {
        expect(timesOf(inputs.map((input) => round({ input }, "same"))).every((times) => times === 1)).toBe(
          true,
        );
      }),
    );
  });

  test("the model is notified at the end of the last result, whatever its form", () => {
    const text: ToolResultBlock = { type: "tool_result", tool_use_id: "1", content: "found" };
    const blocks: ToolResultBlock = { ...text, content: [{ type: "text", text: "found" }] };
    for (const block of [text, blocks]) {
      const repetition = { times: 3, period: 1, calls: 1, isUnproductive: true };
      const [first, last] = withRepetitionNote([text, block], repetition, 30);
      expect(first).toBe(text);
      expect(JSON.stringify(last)).toMatch(/found.*the same call 3 times in a row.*After 30 times/);
    }
  });

  test("the note to the model is true: of one call, of several, of two in turns, and of what ends nothing", () => {
    const base = { times: 4, period: 1, calls: 1, isUnproductive: true };
    expect(describeRepetition(base, "You")).toBe(
      "You made the same call 4 times in a row, with the same result.",
    );
    expect(describeRepetition({ ...base, calls: 2 }, "You")).toBe(
      "You made the same 2 calls 4 times in a row, with the same results.",
    );
    expect(describeRepetition({ ...base, period: 2 }, "You")).toBe(
      "You made the same two rounds of calls in turn 4 times, each with the same results.",
    );
    const text: ToolResultBlock = { type: "tool_result", tool_use_id: "1", content: "found" };
    expect(JSON.stringify(withRepetitionNote([text], { ...base, isUnproductive: false }, 30))).not.toContain(
      "ends",
    );
  });

  test("two rounds in turns end a run only where both are futile", () => {
    const turns = (roundKind: RoundKind) => [a(), { ...b(), roundKind }, a(), { ...b(), roundKind }];
    const lastOf = (rounds: readonly ReturnType<typeof round>[]) => {
      let state = noRepetition;
      return rounds.map((each) => {
        const found = foldRound(state, each);
        state = found.state;
        return found.repetition;
      });
    };
    expect(lastOf(turns("futile")).at(-1)).toMatchObject({ times: 2, period: 2, isUnproductive: true });
    expect(lastOf(turns("polling")).at(-1)).toMatchObject({ times: 2, period: 2, isUnproductive: false });
  });
});

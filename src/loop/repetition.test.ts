import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ToolResultBlock } from "../conversation/message.ts";
import { foldRound, noRepetition, withRepetitionNote } from "./repetition.ts";

let made = 0;

function round(input: unknown, result: string, more: { name?: string; pending?: boolean } = {}) {
  made += 1;
  const id = `call_${made}`;
  return {
    calls: [{ type: "tool_use" as const, id, name: more.name ?? "Read", input }],
    results: [{ type: "tool_result" as const, tool_use_id: id, content: result }],
    ...(more.pending === true ? { pending: new Set([id]) } : {}),
  };
}

function timesOf(rounds: readonly ReturnType<typeof round>[]): number[] {
  let state = noRepetition;
  return rounds.map((each) => {
    const found = foldRound(state, each);
    state = found.state;
    return found.times;
  });
}

const a = () => round({ file: "a", limit: 1 }, "same");
const b = () => round({ file: "b" }, "other");

describe("[LIM-5] a call that comes again and again with the same result", () => {
  test.each([
    ["is counted", [a(), a(), a(), a()], [1, 2, 3, 4]],
    ["whatever the order of its keys", [a(), round({ limit: 1, file: "a" }, "same")], [1, 2]],
    ["not when the result differs", [a(), round({ file: "a", limit: 1 }, "new"), a()], [1, 1, 1]],
    ["not when the input differs", [a(), round({ file: "a", limit: 2 }, "same")], [1, 1]],
    ["not when the tool differs", [a(), round({ file: "a", limit: 1 }, "same", { name: "Grep" })], [1, 1]],
    ["begins anew after another call", [a(), a(), b(), a()], [1, 2, 1, 1]],
    ["is seen in pairs that take turns", [a(), b(), a(), b(), a(), b()], [1, 1, 1, 2, 2, 3]],
    [
      "not when it asks for something that still goes on",
      Array.from({ length: 8 }, () => round({ id: 1 }, "running", { pending: true })),
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

  test("the agent is told at the end of the last result, whatever its form", () => {
    const text: ToolResultBlock = { type: "tool_result", tool_use_id: "1", content: "found" };
    const blocks: ToolResultBlock = { ...text, content: [{ type: "text", text: "found" }] };
    for (const block of [text, blocks]) {
      const [first, last] = withRepetitionNote([text, block], 3);
      expect(first).toBe(text);
      expect(JSON.stringify(last)).toMatch(/found.*the same result 3 times in a row/);
    }
  });
});

import { readAgentLimits } from "@retinue/config/settings/agent-limits.ts";
import { describe, expect, test } from "vitest";
import {
  decideLimits,
  planLimits,
  readLimitSettings,
  readModelClocks,
  refuseAgentLimits,
} from "./plan-limits.ts";

describe("[LIM-3] limits from several places", () => {
  test("the smallest number of each counts, with where it came from", () => {
    expect(
      decideLimits([
        { limits: { seconds: 60, usd: 1 }, from: (key) => `settings.json (${key})` },
        { limits: { seconds: 90, tokens: 5 }, from: "the definition" },
        { limits: { usd: 0.5 }, from: "the call" },
        { limits: undefined, from: "nobody" },
      ]),
    ).toEqual({
      timeMs: { value: 60_000, from: "settings.json (seconds)" },
      tokens: { value: 5, from: "the definition" },
      costUsd: { value: 0.5, from: "the call" },
    });
  });

  const settings = readLimitSettings({ agent: { usd: 1, toolSeconds: 30 }, tree: { usd: 5, seconds: 600 } });
  const facts = { settings, background: { stopMs: 600_000, from: "the default" } };

  test("a session has the limits of its tree; of those for agents only that of a tool call", () => {
    expect(
      planLimits({ background: false, maxBudgetUsd: 2 }, { limits: { tokens: 9 } }, { limits: facts }),
    ).toEqual({
      limits: {
        toolTimeMs: { value: 30_000, from: "settings" },
        tokens: { value: 9, from: "the definition" },
      },
      treeLimits: { costUsd: { value: 2, from: "the call" }, timeMs: { value: 600_000, from: "settings" } },
    });
  });

  test("a child has those of agents, and cannot widen them", () => {
    const parent = { treeLimits: { costUsd: { value: 2, from: "the call" } } };
    const plan = (background: boolean) =>
      planLimits({ background, limits: { usd: 50 } }, { limits: { seconds: 5 } }, { limits: facts, parent });
    expect(plan(false)).toEqual({
      limits: {
        timeMs: { value: 5000, from: "the definition" },
        costUsd: { value: 1, from: "settings" },
        toolTimeMs: { value: 30_000, from: "settings" },
      },
      ...parent,
    });
    expect(plan(true).limits?.silenceMs).toEqual({ value: 300_000, from: "the default" });
  });

  test("[LIM-5] how long a child in the background may be silent has its default only where it is not set", () => {
    const longer = { limits: { silenceSeconds: 1200 } };
    const { limits } = planLimits({ background: true }, longer, { limits: facts, parent: {} });
    expect(limits?.silenceMs).toEqual({ value: 1_200_000, from: "the definition" });
  });

  test("[LIM-5] a main agent is not watched for silence, so its plan has no such limit", () => {
    expect(planLimits({ background: false }, { limits: { silenceSeconds: 60 } }, {})).toEqual({});
  });

  test("nothing said limits nothing", () => {
    expect(planLimits({ background: false }, undefined, {})).toEqual({});
    expect(planLimits({ background: false }, {}, { parent: {} })).toEqual({});
  });
});

describe("a limit that cannot be used", () => {
  test("refuses the agent where a program says it", () => {
    expect(refuseAgentLimits({ usd: "1" }, "limits")).toBe('limits.usd needs a number above 0, but is "1".');
    expect(refuseAgentLimits({ usd: 1 }, "limits")).toBeUndefined();
  });
});

test("the clocks of providers are read in seconds", () => {
  expect(readModelClocks({ model: { firstTokenSeconds: 30, betweenTokensSeconds: 5 } })).toEqual({
    firstTokenMs: 30_000,
    betweenTokensMs: 5000,
  });
  expect(readModelClocks({ model: "fast" })).toEqual({});
  expect(readModelClocks(undefined)).toEqual({});
  expect(readModelClocks(undefined, 600_000)).toEqual({ firstTokenMs: 600_000 });
  expect(readModelClocks({ model: { firstTokenSeconds: 30 } }, 600_000)).toEqual({ firstTokenMs: 30_000 });
});

test("limits of a definition are read strictly", () => {
  expect(readAgentLimits({ seconds: 1.5, toolCalls: 3 })).toEqual({
    type: "limits",
    limits: { seconds: 1.5, toolCalls: 3 },
  });
  expect(readAgentLimits({ toolCalls: 0.5 })).toMatchObject({ type: "unusable", at: "toolCalls" });
  expect(readAgentLimits([])).toMatchObject({ type: "unusable" });
});

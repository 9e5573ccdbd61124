import { readAgentLimits } from "@retinue/config/agents/agent-limits.ts";
import { describe, expect, test } from "vitest";
import {
  decideLimits,
  planLimits,
  readLimitSettings,
  readModelClocks,
  refuseAgentLimits,
} from "./limit-plan.ts";

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

  test("[LIM-5] how long a child in the background may be silent is usual only where no one says it", () => {
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

describe("a limit that cannot be used ends the start", () => {
  test.each([
    [{ agnets: 5 }, /limits\.agnets is not known; did you mean agents\?/],
    [{ agent: 5 }, /limits\.agent needs an object, but is 5/],
    [{ agent: { usd: 0 } }, /limits\.agent\.usd needs a number above 0, but is 0/],
    [{ agent: { tokens: 1.5 } }, /limits\.agent\.tokens needs a whole number from 1/],
    [{ tree: { second: 5 } }, /limits\.tree\.second is not a limit; did you mean seconds\?/],
    [{ tree: { toolSeconds: 5 } }, /limits\.tree\.toolSeconds is not a limit/],
    [{ unknownPrice: "perhaps" }, /limits\.unknownPrice needs "allow" or "refuse"/],
    [{ model: { firstTokenSeconds: -1 } }, /limits\.model needs firstTokenSeconds/],
    [{ agent: JSON.parse('{"__proto__": 1}') }, /limits\.agent\.__proto__ is not a limit/],
  ])("%j", (setting, message) => {
    expect(() => readLimitSettings(setting)).toThrow(message);
  });

  test("and one of a program refuses the agent", () => {
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
});

test("limits of a definition are read strictly", () => {
  expect(readAgentLimits({ seconds: 1.5, toolCalls: 3 })).toEqual({
    type: "limits",
    limits: { seconds: 1.5, toolCalls: 3 },
  });
  expect(readAgentLimits({ toolCalls: 0.5 })).toMatchObject({ type: "unusable", at: "toolCalls" });
  expect(readAgentLimits([])).toMatchObject({ type: "unusable" });
});

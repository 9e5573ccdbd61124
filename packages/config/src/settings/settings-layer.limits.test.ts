import { expect, test } from "vitest";
import { mergeLimits } from "./settings-layer.ts";

test.each([
  [
    "a project cannot raise what the user has set",
    { tree: { usd: 1 } },
    { tree: { usd: 99 } },
    { tree: { usd: 1 } },
  ],
  ["it can lower it", { tree: { usd: 5 } }, { tree: { usd: 1 } }, { tree: { usd: 1 } }],
  [
    "and set what no one has set",
    { tree: { usd: 5 } },
    { tree: { tokens: 9 }, agent: { usd: 1 } },
    { tree: { usd: 5, tokens: 9 }, agent: { usd: 1 } },
  ],
  [
    "how many agents run at the same time is no ceiling of cost",
    { agents: 5 },
    { agents: 20 },
    { agents: 20 },
  ],
  [
    "what is no number stays to be refused",
    { tree: { usd: 1 } },
    { tree: { usd: "x" } },
    { tree: { usd: "x" } },
  ],
])("[LIM-3] %s", (_what, low, high, expected) => {
  expect(mergeLimits(low, high)).toEqual(expected);
});

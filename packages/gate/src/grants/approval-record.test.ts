import { describe, expect, test } from "vitest";
import {
  type ApprovalGrant,
  type CoveredCall,
  coversCall,
  digestOf,
  type GrantState,
  type GrantUse,
  readAnswer,
  readQuestion,
} from "./approval-record.ts";

const grant: ApprovalGrant = {
  version: 1,
  question: "0123456789ab",
  digest: "d",
  agents: ["child"],
  by: "Ada",
  via: "cli",
  at: 1,
  type: "allow",
  scope: "session",
  rules: ["Edit"],
};
const use: GrantUse = {
  version: 1,
  grant: grant.question,
  agent: "child",
  call: "c",
  tool: "Edit",
  digest: "d",
  by: "Ada",
  at: 2,
  run: "r",
  usd: 0,
};
const call: CoveredCall = {
  digest: "other",
  path: ["main", "sibling"],
  now: 10,
  usd: 1,
  run: "r",
  passes: () => true,
};
const unused: GrantState = { uses: [], isRevoked: false };

describe("what a grant covers [APR-2]", () => {
  test.each<[string, Partial<ApprovalGrant>, Partial<GrantState>, Partial<CoveredCall>, boolean]>([
    ["another call of the session by its rules", {}, {}, {}, true],
    ["nothing that settings keep from passing", {}, {}, { passes: () => false }, false],
    ["no other call without rules", { rules: [] }, {}, {}, false],
    ["the same call of another agent", { rules: [] }, {}, { digest: "d" }, true],
    ["calls of its agent", { scope: "agent" }, {}, { path: ["main", "child"] }, true],
    ["no call of a sibling", { scope: "agent" }, {}, {}, false],
    ["calls below the agent of a tree", { scope: "tree", agents: ["main"] }, {}, {}, true],
    ["no call beside a tree", { scope: "tree" }, {}, {}, false],
    ["no other call where it is for the call", { scope: "call" }, {}, { path: ["main", "child"] }, false],
    ["its place once", { scope: "call" }, {}, { digest: "d", path: ["main", "child"] }, true],
    [
      "its place not twice",
      { scope: "call" },
      { uses: [use] },
      { digest: "d", path: ["main", "child"] },
      false,
    ],
    ["nothing once it is revoked", {}, { isRevoked: true }, {}, false],
    ["calls before its end", { until: 11 }, {}, {}, true],
    ["nothing from its end on", { until: 10 }, {}, {}, false],
    ["calls while uses are left", { maxUses: 2 }, { uses: [use] }, {}, true],
    ["nothing when it is used up", { maxUses: 1 }, { uses: [use] }, {}, false],
    ["calls while money is left", { maxUsd: 1.5 }, {}, {}, true],
    ["nothing when the money is spent", { maxUsd: 1 }, {}, {}, false],
    [
      "what other processes spent counts",
      { maxUsd: 1.5 },
      { uses: [{ ...use, run: "before", usd: 0.5 }] },
      {},
      false,
    ],
    ["nothing by money where a price is not known", { maxUsd: 9 }, {}, { usd: undefined }, false],
  ])("%s", (_, changes, state, facts, covered) => {
    expect(coversCall({ ...grant, ...changes }, { ...unused, ...state }, { ...call, ...facts })).toBe(
      covered,
    );
  });
});

describe("records [APR-2]", () => {
  const judged = { tool: "Bash", input: { command: "ls" }, directory: "/p", paths: ["/p/b", "/p/a"] };

  test("have the same digest whatever the order, and another one for another call", () => {
    const digest = digestOf(judged);
    expect(digestOf({ ...judged, paths: ["/p/a", "/p/b"] })).toBe(digest);
    expect(digestOf({ ...judged, directory: "/q" })).not.toBe(digest);
    expect(digestOf({ ...judged, input: { command: "ls", timeout: 1 } })).not.toBe(digest);
  });

  test("of a question whose call was changed behind its digest are not read", () => {
    const facts = { session: "s", reason: "r", suggestedRules: [], everyTime: false, places: [], at: 1 };
    const question = { version: 1, id: "0123456789ab", digest: digestOf(judged), ...judged, ...facts };
    expect(readQuestion(question)).toEqual(question);
    expect(readQuestion({ ...question, input: { command: "rm -r ." } })).toBeUndefined();
  });

  test("with a limit that cannot be read are no answer", () => {
    expect(readAnswer(grant)).toEqual(grant);
    for (const bad of [{ maxUses: "3" }, { until: null }, { scope: "world" }, { agents: "main" }])
      expect(readAnswer({ ...grant, ...bad })).toBeUndefined();
  });
});

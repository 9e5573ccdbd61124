import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aggregateCall, aggregateEvent, type HookResult } from "./aggregate.ts";
import type { HookAnswer } from "./hook-answer.ts";

let count = 0;
const said = (answer: HookAnswer): HookResult => {
  count += 1;
  return { name: `hook ${count}`, reading: { type: "answer", answer }, toleratesFailure: false };
};
const broke = (toleratesFailure = false): HookResult => ({
  name: "broken hook",
  reading: { type: "failed", reason: "it was killed by SIGKILL" },
  toleratesFailure,
});

const allow = said({ verdict: "allow", reason: "known" });
const ask = said({ verdict: "ask", reason: "unsure" });
const deny = said({ verdict: "deny", reason: "never" });
const silent = said({});

describe("[HKS-6] several hooks about one call", () => {
  test.each<[string, readonly HookResult[], string, string]>([
    ["none", [], "none", ""],
    ["silence", [silent], "none", ""],
    ["allow", [silent, allow], "allow", "known"],
    ["ask over allow", [allow, ask, silent], "ask", "unsure"],
    ["deny over all", [allow, ask, deny], "deny", "never"],
    ["both reasons", [deny, said({ verdict: "deny", reason: "no way" })], "deny", "never\nno way"],
    ["a tolerated failure", [broke(true), allow], "allow", "known"],
  ])("%s", (_title, results, type, reason) => {
    expect(aggregateCall(results)).toMatchObject({ type, reason });
  });

  test("a guard that fails lets nothing through, whatever the others say", () => {
    const outcome = aggregateCall([allow, broke()]);
    expect(outcome.type).toBe("deny");
    expect(outcome.reason).toBe(
      "the broken hook failed, and a failing guard blocks the call: it was killed by SIGKILL",
    );
    expect(outcome.failures).toEqual(["The broken hook failed: it was killed by SIGKILL."]);
  });

  test("the first changed input counts, and another that differs is reported", () => {
    const one = said({ updatedInput: { command: "ls" } });
    const same = said({ updatedInput: { command: "ls" } });
    const other = said({ updatedInput: { command: "pwd" } });
    const outcome = aggregateCall([one, same, other]);
    expect(outcome).toMatchObject({ type: "none", updatedInput: { command: "ls" } });
    expect(outcome.failures).toHaveLength(1);
    expect(outcome.failures[0]).toContain(`The ${other.name} changed the input too`);
  });

  test("a denied call keeps no changed input", () => {
    expect(aggregateCall([deny, said({ updatedInput: {} })])).not.toHaveProperty("updatedInput");
  });

  test("contexts, messages and the request to stop come together", () => {
    const results = [said({ context: "a", systemMessage: "m" }), said({ context: "b", stop: "enough" })];
    expect(aggregateCall(results)).toMatchObject({ context: "a\nb", systemMessages: ["m"], stop: "enough" });
  });

  test("adding a hook never takes back a refusal or a question", () => {
    const strictness = { none: 0, allow: 0, ask: 1, deny: 2 };
    const result = fc.constantFrom(allow, ask, deny, silent, broke(), broke(true));
    fc.assert(
      fc.property(fc.array(result), result, fc.nat(), (results, added, at) => {
        const more = results.toSpliced(at % (results.length + 1), 0, added);
        const before = strictness[aggregateCall(results).type];
        expect(strictness[aggregateCall(more).type]).toBeGreaterThanOrEqual(before);
      }),
    );
  });
});

describe("[HKS-6] several hooks about another event", () => {
  test("one block blocks, with its reason", () => {
    const outcome = aggregateEvent([said({}), said({ blocks: true, reason: "tests fail" })]);
    expect(outcome).toMatchObject({ blocked: true, reason: "tests fail" });
  });

  test("a failure is reported and blocks nothing", () => {
    expect(aggregateEvent([broke()])).toMatchObject({
      blocked: false,
      failures: ["The broken hook failed: it was killed by SIGKILL."],
    });
  });

  test("the first changed output counts", () => {
    const results = [said({}), said({ updatedOutput: "one" }), said({ updatedOutput: "two" })];
    expect(aggregateEvent(results).updatedOutput).toBe("one");
  });
});

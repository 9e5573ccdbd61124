import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "./read-environment.ts";

describe("environment variables", () => {
  it("gives nothing for an empty environment", () => {
    expect(readEnvironment({})).toEqual({ options: {}, issues: [] });
  });

  it("reads models, switches, numbers and texts under their own names", () => {
    const { options, issues } = readEnvironment({
      CLAUDE_CODE_SUBAGENT_MODEL: "haiku",
      CLAUDE_CODE_ENTRYPOINT: "sdk-ts",
      ANTHROPIC_DEFAULT_OPUS_MODEL: "my-opus",
      CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
      CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "80%",
      BASH_DEFAULT_TIMEOUT_MS: "5000",
      UNRELATED: "x",
    });
    expect(issues).toEqual([]);
    expect(options).toEqual({
      subagentModel: "haiku",
      entrypoint: "sdk-ts",
      opusModel: "my-opus",
      backgroundTasksDisabled: true,
      autoCompactPercent: 80,
      bashDefaultTimeoutMs: 5000,
    });
  });

  it.each([
    ["1", true],
    ["TRUE", true],
    ["on", true],
    ["0", false],
    ["no", false],
    ["", undefined],
    ["maybe", undefined],
  ])("reads the switch %j as %j", (value, expected) => {
    expect(readEnvironment({ DISABLE_COMPACT: value }).options.compactDisabled).toBe(expected);
  });

  it.each([
    ["CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "many"],
    ["CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "0"],
    ["CLAUDE_CODE_AUTO_COMPACT_WINDOW", "5"],
    ["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "0"],
    ["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "101"],
    ["DISABLE_COMPACT", "maybe"],
  ])("reports %s=%s with what is expected, and does not use it", (name, value) => {
    const { options, issues } = readEnvironment({ [name]: value });
    expect(options).toEqual({});
    expect(issues).toMatchObject([{ code: "bad-environment-value", path: [name] }]);
    expect(issues[0]?.message).toContain(`${name} must be`);
  });

  it("never prints the value of a key in a finding", () => {
    expect(JSON.stringify(readEnvironment({ ANTHROPIC_API_KEY: "secret" }).issues)).not.toContain("secret");
  });

  it("never throws, and gives for each variable a value, a finding or nothing", () => {
    const name = fc.constantFrom(
      "DISABLE_COMPACT",
      "BASH_MAX_TIMEOUT_MS",
      "ANTHROPIC_MODEL",
      "__proto__",
      "constructor",
    );
    fc.assert(
      fc.property(fc.dictionary(name, fc.string({ unit: anyCharacter })), (environment) => {
        const { options, issues } = readEnvironment(environment);
        expect(Object.keys(options).length + issues.length).toBeLessThanOrEqual(
          Object.keys(environment).length,
        );
      }),
    );
  });
});

import { describe, expect, test } from "vitest";
import { describeRunner, knownRunners, readRunner, runnerInput } from "./agent-runner.ts";
import { parseAgentDefinition } from "./parse-agent-definition.ts";

describe("[FRN-1] `runner` of a definition", () => {
  test.each([
    ["codex", "codex", ["codex-acp"]],
    ["gemini", "gemini", ["gemini", "--acp"]],
    ["my-agent --acp", "my-agent", ["my-agent", "--acp"]],
    ["/opt/x/agent 'a b' \"c\"", "agent", ["/opt/x/agent", "a b", "c"]],
    [["node", "a.js", 8080], "node", ["node", "a.js", "8080"]],
  ])("%j is read", (acp, name, command) => {
    expect(readRunner({ acp })).toEqual({ type: "runner", runner: { name, command } });
  });

  test.each([
    ["a text", "codex", "not a mapping"],
    ["nothing", {}, "neither a string nor a list"],
    ["an empty command", { acp: " " }, "not a plain command line"],
    ["an empty list", { acp: [] }, "names no program"],
    ["a shell's line", { acp: "agent | tee log" }, "it is not run in a shell"],
    ["a variable", { acp: "$AGENT" }, "it is not run in a shell"],
    ["an open quote", { acp: "agent 'a" }, "not a plain command line"],
    ["an object in the list", { acp: ["a", {}] }, "is not a string"],
    ["an unknown key", { acp: "codex", envs: [] }, "did you mean env?"],
    ["values of variables", { acp: "codex", env: { KEY: "secret" } }, "not a list of variable names"],
    ["a value of a variable", { acp: "codex", env: ["KEY=secret"] }, "values stay in the environment"],
    ["another word for true", { acp: "codex", unguarded: "please" }, "neither true nor false"],
  ])("%s is unreadable", (_what, value, reason) => {
    expect(readRunner(value)).toMatchObject({ type: "unreadable", reason: expect.stringContaining(reason) });
  });

  test("a definition whose runner cannot be read does not load, because another program would do the work", () => {
    const text = "---\nname: a\ndescription: d\nrunner: codex\n---\nx";
    const { definition, diagnostics } = parseAgentDefinition(text, { file: "a.md" });
    expect(definition).toBeUndefined();
    expect(diagnostics).toMatchObject([{ severity: "error", line: 4, file: "a.md" }]);
  });

  test("a plugin names none", () => {
    const text = "---\nname: a\ndescription: d\nrunner: { acp: codex }\n---\nx";
    const { definition, diagnostics } = parseAgentDefinition(text, { scope: "plugin", plugin: "p" });
    expect(definition?.runner).toBeUndefined();
    expect(diagnostics.map(({ message }) => message).join(" ")).toContain("runner");
  });

  test("is written as it was read", () => {
    for (const acp of [...knownRunners.keys(), ["node", "a b.js"]]) {
      const reading = readRunner({ acp, env: ["KEY"], unguarded: true });
      if (reading.type !== "runner") throw new Error(reading.reason);
      expect(runnerInput(reading.runner)).toEqual({ acp, env: ["KEY"], unguarded: true });
    }
    expect(describeRunner({ name: "gemini", command: ["gemini", "--acp"] })).toBe("gemini: gemini --acp");
  });
});

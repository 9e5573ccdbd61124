import { analyzeWith } from "@retinue/gate/shell/analyze-with.ts";
import { maxSteps } from "@retinue/gate/shell/walk.ts";
import * as grammar from "unbash";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LongJudge, openLongJudge } from "./judge-long.ts";
import { generateLong, longCommands } from "./long-command.ts";
import { createChoices } from "./random.ts";

/** Far more than any takes, on any machine: what is measured is the work of this process alone. */
const maxCpuMs = 6_000;

describe("a long command is judged with bounded work [PRM-9]", () => {
  let judge: LongJudge;
  beforeAll(() => {
    judge = openLongJudge();
  });
  afterAll(() => judge[Symbol.dispose]());

  it.each([...longCommands.keys()])("%s", async (kind) => {
    const command = longCommands.get(kind)?.(12_000, createChoices(1)) ?? "";
    const { decision, cpuMs } = await judge.judge(
      { tool: "Bash", effect: "execute", input: { command } },
      "many",
    );
    // A fifth of the rules of the mixtures.
    expect(cpuMs).toBeLessThan(maxCpuMs / 2);
    // Scoped rules forbid some: in bypass mode too, what is too long to be looked into is asked about or refused.
    if (command.length > 10_000) expect(decision.type).not.toBe("allow");
  }, 60_000);

  it("in generated mixtures of them", async () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const { command, kind } = generateLong(seed);
      const call = { tool: "Bash", effect: "execute", input: { command } };
      const { cpuMs } = await judge.judge(call, seed % 2 === 0 ? "very many" : "usual");
      expect(cpuMs, `seed ${seed}: ${kind}`).toBeLessThan(maxCpuMs);
    }
  }, 120_000);

  it.each([
    ["a path", "Read", "read", { file_path: "a/".repeat(500_000) }],
    ["a path upwards", "Read", "read", { file_path: "../".repeat(300_000) }],
    [
      "a path through links",
      "Edit",
      "edit",
      { file_path: "loop/".repeat(200_000), old_string: "a", new_string: "b" },
    ],
    ["a path of stars", "Write", "edit", { file_path: "*".repeat(1_000_000), content: "" }],
    ["a pattern", "Glob", "read", { pattern: "**/*{a,b}".repeat(100_000) }],
    ["an expression", "Grep", "read", { pattern: "(a*)*".repeat(200_000), path: "src" }],
    [
      "an address",
      "WebFetch",
      "network",
      { url: `https://example.com/${"a.".repeat(500_000)}`, prompt: "x" },
    ],
    ["a host", "WebFetch", "network", { url: `https://${"a.".repeat(500_000)}com/`, prompt: "x" }],
    ["a name of a tool", `mcp__${"a__".repeat(1000)}b`, "execute", { x: "y".repeat(1_000_000) }],
    [
      "a name of an agent",
      "Agent",
      "spawn",
      { subagent_type: "a-".repeat(500_000), prompt: "x", description: "x" },
    ],
  ] as const)(
    "%s of a million characters too",
    async (_, tool, effect, input) => {
      for (const policy of ["none", "usual", "very many"]) {
        const { cpuMs } = await judge.judge({ tool, effect, input }, policy);
        expect(cpuMs).toBeLessThan(maxCpuMs);
      }
    },
    60_000,
  );

  it("counts its steps, and says that a command is too complex", () => {
    const surroundings = { home: "/home/ada", matches: () => undefined };
    const steps = (command: string): number => analyzeWith(grammar, command, surroundings).steps;
    expect(steps("ls -l src")).toBeLessThan(1_000);
    const [small, large] = [steps("git status; ".repeat(20)), steps("git status; ".repeat(200))];
    expect(large / small).toBeLessThan(15);
    const { analysis, steps: spent } = analyzeWith(grammar, `${"eval ".repeat(1_000)}rm -rf x`, surroundings);
    expect(analysis.opaque).toMatch(/too complex|nested too deeply/);
    expect(spent).toBeLessThan(2 * maxSteps);
    // What was seen until then still counts.
    expect(analysis.units.length).toBeGreaterThan(0);
  });
});

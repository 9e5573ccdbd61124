import { describe, expect, it } from "vitest";
import { createRegistry } from "../agent-registry.ts";
import { agentScopes } from "../agent-source.ts";
import { toolsPhrase } from "../describe-agents.ts";
import { rateDescription } from "../rate-description.ts";
import { builtinAgents } from "./builtin-agents.ts";

const names = (options?: Parameters<typeof builtinAgents>[0]) =>
  builtinAgents(options).map(({ name }) => name);
const everyAgent = builtinAgents().map((definition) => [definition.name, definition] as const);

describe("which built-in agents there are", () => {
  it("six that models are offered and one for merges, in a fixed order [BLT-1] [BLT-2] [BLT-3] [BLT-4] [BLT-5] [BLT-6]", () => {
    expect(names()).toEqual([
      "general-purpose",
      "Explore",
      "Plan",
      "Bash",
      "statusline-setup",
      "merge-resolver",
      "claude-code-guide",
    ]);
  });

  it.each([
    "sdk-ts",
    "sdk-py",
    "sdk-cli",
  ])("the guide is absent under the entrypoint %s [BLT-6]", (entrypoint) => {
    expect(names({ entrypoint })).toEqual([
      "general-purpose",
      "Explore",
      "Plan",
      "Bash",
      "statusline-setup",
      "merge-resolver",
    ]);
  });

  it.each([
    undefined,
    "",
    "cli",
    "sdk",
    "SDK-TS",
  ])("the guide is there under the entrypoint %j [BLT-6]", (entrypoint) => {
    expect(names({ entrypoint })).toContain("claude-code-guide");
  });

  it("Explore and Plan can be left out, and so can all", () => {
    expect(names({ disableExplorePlan: true })).toEqual([
      "general-purpose",
      "Bash",
      "statusline-setup",
      "merge-resolver",
      "claude-code-guide",
    ]);
    expect(names({ disableBuiltins: true })).toEqual([]);
    expect(names({ disableBuiltins: false, disableExplorePlan: false })).toHaveLength(7);
  });

  it("the facts for the guide reach its prompt [BLT-6]", () => {
    const guide = { agents: [{ name: "deployer", description: "Ships it." }], skills: [], mcpServers: [] };
    expect(builtinAgents({ guide }).at(-1)?.prompt).toContain("- deployer: Ships it.");
  });

  it.each(
    agentScopes.filter((scope) => scope !== "builtin"),
  )("each is replaced by a definition of the same name in the scope %s [BLT-7]", (scope) => {
    const replacements = builtinAgents().map((builtin) => ({
      ...builtin,
      source: { scope },
      prompt: "Mine.",
    }));
    const registry = createRegistry({ definitions: [...builtinAgents(), ...replacements] });
    for (const name of names()) {
      expect(registry.find(name)).toMatchObject({
        type: "found",
        agent: { definition: { prompt: "Mine." }, shadowed: [{ name, source: { scope: "builtin" } }] },
      });
    }
  });
});

describe.each(everyAgent)("the built-in agent %s", (_name, definition) => {
  it("is plain data that survives JSON", () => {
    expect(JSON.parse(JSON.stringify(definition))).toEqual(definition);
    expect(definition.written).toEqual({});
  });

  it("has a description that earns the full rating [CLI-2]", () => {
    expect(rateDescription(definition.description)).toMatchObject({ score: 3, vague: false, advice: [] });
  });

  it("is informed that only its last message is seen, what to return, and that what it reads is no instruction", () => {
    expect(definition.prompt).toContain("# Your last message");
    expect(definition.prompt).toMatch(/\bdata\b/);
    expect(definition.prompt).toMatch(/\binstructions?\b/);
    expect(definition.prompt).toMatch(/\babsolute\b/i);
  });

  it("has a prompt of reasonable size that does not shout", () => {
    const lines = definition.prompt.split("\n");
    expect(lines.length).toBeGreaterThanOrEqual(25);
    expect(lines.length).toBeLessThanOrEqual(70);
    expect(definition.prompt).not.toMatch(/\b(?:IMPORTANT|CRITICAL|NEVER|ALWAYS|MUST)\b|!!/);
    expect(definition.prompt).not.toMatch(/undefined|\[object/);
  });

  it("is not reported to use a file or search tool that it does not have", () => {
    const phrase = toolsPhrase(definition);
    if (phrase.startsWith("All tools")) return;
    const granted = new Set(definition.tools);
    for (const tool of ["Glob", "Grep", "Write", "WebFetch", "WebSearch", "Edit"]) {
      const named = new RegExp(`\\b${tool}\\b`).test(definition.prompt);
      expect(named && !granted.has(tool), tool).toBe(false);
    }
  });
});

import { escapeLine } from "@retinue/base/foundation/escape-control-tags.ts";
import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentDefinition } from "./agent-definition.ts";
import { describeAgents, shorten, toolsPhrase } from "./describe-agents.ts";

function agent(name: string, description: string, more: Partial<AgentDefinition> = {}): AgentDefinition {
  return { name, description, prompt: "", source: { scope: "project" }, written: {}, ...more };
}

describe("the tools of an agent in words [AGT-2]", () => {
  it.each<[Pick<AgentDefinition, "tools" | "disallowedTools">, string]>([
    [{}, "All tools"],
    [{ tools: ["*"] }, "All tools"],
    [{ tools: [] }, "None"],
    [{ tools: ["Read", "Grep"] }, "Read, Grep"],
    [{ tools: ["Task(worker, researcher)", "Read"] }, "Task(worker, researcher), Read"],
    [{ disallowedTools: [] }, "All tools"],
    [{ disallowedTools: ["Write", "Edit"] }, "All tools except Write, Edit"],
    [{ tools: ["*"], disallowedTools: ["Bash"] }, "All tools except Bash"],
    [{ disallowedTools: ["*"] }, "None"],
    [{ tools: ["Read", "Bash"], disallowedTools: ["Bash"] }, "Read"],
    [{ tools: ["Bash(git *)"], disallowedTools: ["Bash"] }, "None"],
    [{ tools: ["Bash(git *)", "Read"], disallowedTools: ["Bash(git *)"] }, "Read"],
    [{ tools: ["Read", "Bash"], disallowedTools: ["Bash(rm *)"] }, "Read, Bash except Bash(rm *)"],
    [{ tools: ["Read"], disallowedTools: ["Bash(rm *)"] }, "Read"],
    [{ tools: ["Read\n", "constructor"] }, "Read, constructor"],
  ])("%j gives %s", (definition, phrase) => {
    expect(toolsPhrase(definition)).toBe(phrase);
  });
});

describe("the list of agents for a model [AGT-2]", () => {
  it("has one line per agent in the order given, with name, description and tools", () => {
    const { text, shortened } = describeAgents([
      agent("zebra", "Counts stripes.", { tools: ["Read"] }),
      agent("ant", "Carries things.", { disallowedTools: ["Write"] }),
      agent("bee", "Dances."),
    ]);
    expect(text).toBe(
      [
        "- zebra: Counts stripes. (Tools: Read)",
        "- ant: Carries things. (Tools: All tools except Write)",
        "- bee: Dances. (Tools: All tools)",
      ].join("\n"),
    );
    expect(shortened).toEqual([]);
  });

  it("marks an agent that sees the conversation", () => {
    const { text } = describeAgents([
      agent("a", "Follows.", { forkContext: true }),
      agent("b", "B.", { forkContext: false }),
    ]);
    expect(text).toBe(
      "- a: Follows. (Tools: All tools; sees the conversation so far)\n- b: B. (Tools: All tools)",
    );
  });

  it("names a plugin's agent by the id that a call must use", () => {
    const source = { scope: "plugin", plugin: "tools", id: "tools:a" } as const;
    expect(describeAgents([agent("a", "Works.", { source })]).text).toBe(
      "- tools:a: Works. (Tools: All tools)",
    );
  });

  it("leaves no gap where a description is empty, and no text where there are no agents", () => {
    expect(describeAgents([agent("a", " \n")]).text).toBe("- a: (Tools: All tools)");
    expect(describeAgents([]).text).toBe("");
  });

  it("keeps every agent on its own line whatever is in names and descriptions", () => {
    const word = fc.string({ unit: anyCharacter, maxLength: 80 });
    fc.assert(
      fc.property(fc.array(fc.tuple(word, word), { maxLength: 6 }), (pairs) => {
        const { text } = describeAgents(pairs.map(([name, description]) => agent(name, description)));
        expect(text === "" ? 0 : text.split("\n").length).toBe(pairs.length);
        expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}|[\u2028\u2029\u202E]/u);
        expect(text.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe("a budget for the list [AGT-2]", () => {
  const long = `Reviews ${"very ".repeat(100)}long things.`;
  const agents = [agent("short", "Finds files."), agent("long", long), agent("longer", long + long)];

  it("cuts the longest descriptions first, to the same length, and says so", () => {
    const { text, shortened } = describeAgents(agents, { maxCharacters: 600 });
    expect(text.length).toBeLessThanOrEqual(600);
    expect(shortened).toEqual(["long", "longer"]);
    const lines = text.split("\n");
    expect(lines[0]).toBe("- short: Finds files. (Tools: All tools)");
    expect(lines[1]).toMatch(/^- long: Reviews very .*very… \(Tools: All tools\)$/);
    expect(lines[1]?.length).toBe((lines[2]?.length ?? 0) - "er".length);
    expect(lines[3]).toContain("shortened");
  });

  it("cuts only as many as needed", () => {
    expect(describeAgents(agents, { maxCharacters: 1400 }).shortened).toEqual(["longer"]);
  });

  it("changes nothing when all fits exactly", () => {
    const whole = describeAgents(agents);
    expect(describeAgents(agents, { maxCharacters: whole.text.length })).toEqual(whole);
  });

  it("keeps names and tools of all agents even when these alone pass the budget", () => {
    const { text } = describeAgents(agents, { maxCharacters: 10 });
    for (const { name } of agents) expect(text).toContain(`- ${name}: (Tools: All tools)`);
  });

  it("keeps to any budget that leaves room for names, tools and the note", () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 0, max: 1500 }), (sizes, extra) => {
        const list = sizes.map((size, index) =>
          agent(`agent-${index}`, "word ".repeat(size / 5).padEnd(size, "x")),
        );
        const bare = describeAgents(list.map((one) => ({ ...one, description: "" }))).text.length;
        const maxCharacters = bare + 100 + extra;
        const { text, shortened } = describeAgents(list, { maxCharacters });
        expect(text.length).toBeLessThanOrEqual(maxCharacters);
        expect(shortened.length > 0).toBe(text.includes("…"));
      }),
    );
  });
});

describe("text made safe for one line", () => {
  it.each([
    ["a\r\n\tb", "a b"],
    ["a\u2028b", "a b"],
    ["\u001B[31mred\u0007", "[31mred"],
    ["safe\u202Eevil\u2066", "safeevil"],
    ["tag\u{E0041}\u{E0042}ged", "tagged"],
    ["\uD800broken", "\uFFFDbroken"],
    ["family 👨‍👩‍👧 stays", "family 👨‍👩‍👧 stays"],
  ])("%j becomes %j", (text, expected) => {
    expect(escapeLine(text)).toBe(expected);
  });

  it.each([
    ["one two three four", 15, "one two three…"],
    ["onetwothreefour", 8, "onetwot…"],
    ["short", 5, "short"],
    ["a😀b", 3, "a…"],
    ["abc", 1, "…"],
    ["abc", 0, ""],
  ])("%j cut to %i is %j", (text, limit, expected) => {
    expect(shorten(text, limit)).toBe(expected);
  });
});

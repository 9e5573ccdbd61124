import { formatRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import { type Skill, skillGrants } from "./skill.ts";

function skillOf(scope: Skill["source"]["scope"], more: Partial<Skill>): Skill {
  return {
    name: "ship",
    description: "Ships.",
    disableModelInvocation: false,
    userInvocable: true,
    body: "",
    source: { scope, kind: "skill", file: "/s/SKILL.md", directory: "/s" },
    ...more,
  };
}

describe("[SKL-3] what a skill's lists of tools come to", () => {
  const lists = { allowedTools: ["Bash(git *)", "Read"], disallowedTools: ["WebFetch"] };

  test.each([
    ["user", false, ["Bash(git *)", "Read"]],
    ["plugin", false, ["Bash(git *)", "Read"]],
    ["managed", false, ["Bash(git *)", "Read"]],
    ["project", true, ["Bash(git *)", "Read"]],
    ["project", false, []],
  ] as const)("%s, trusted: %s", (scope, trusted, allowed) => {
    const grants = skillGrants(skillOf(scope, lists), { trusted, directory: "/srv" });
    expect(grants.allow.map(({ rule }) => formatRule(rule))).toEqual(allowed);
    expect(grants.deny.map(({ rule }) => formatRule(rule))).toEqual(["WebFetch"]);
    expect(grants.notes).toHaveLength(allowed.length === 0 ? 1 : 0);
  });

  test("a tool that a person answers cannot be allowed beforehand", () => {
    const allowedTools = ["AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "Read"];
    const grants = skillGrants(skillOf("user", { allowedTools }), { trusted: true, directory: "/srv" });
    expect(grants.allow.map(({ rule }) => rule.tool)).toEqual(["Read"]);
    expect(grants.notes).toHaveLength(3);
  });

  test("a rule that cannot be read grants nothing and is reported", () => {
    const grants = skillGrants(skillOf("user", { allowedTools: ["Bash(", "*"] }), {
      trusted: true,
      directory: "/srv",
    });
    expect(grants.allow).toEqual([]);
    expect(grants.notes).toHaveLength(2);
  });
});

import { readRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import { denialsOf } from "./discover-agents.ts";

function patterns(written: unknown): string[] {
  const reading = readRule(written, { list: "deny" });
  return reading.type === "rule" ? denialsOf([reading.rule]).map(({ pattern }) => pattern) : ["invalid"];
}

describe("which agents a deny rule matches [SCP-5]", () => {
  test.each<[unknown, string[]]>([
    ["Task(Explore)", ["Explore"]],
    ["agent(Explore, Plan)", ["Explore", "Plan"]],
    [{ tool: "Task", args: "Explore" }, ["Explore"]],
    ["Agent(subagent_type:Explore)", ["Explore"]],
    ["Agent", ["*"]],
    ["*", ["*"]],
    ["Task*", ["*"]],
    ["agent*", ["*"]],
    ["Agent(model:opus)", []],
    ["TaskStop", []],
    ["Bash", []],
  ])("%j names %j", (written, expected) => {
    expect(patterns(written)).toEqual(expected);
  });
});

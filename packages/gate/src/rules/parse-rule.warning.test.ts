import { expect, test } from "vitest";
import { parseRule, warnOfRule } from "./parse-rule.ts";

test.each([
  ["Bash(git:* push)", "Bash(git * push)"],
  ["Bash(rm:* -rf:*)", "Bash(rm * -rf *)"],
  ["Bash(npm run:*:*)", "Bash(npm run * *)"],
])("[PRM-8] %s matches nothing, and %s is what was meant", (text, meant) => {
  const reading = parseRule(text, { list: "allow" });
  if (reading.type === "invalid") throw new Error(reading.reason);
  expect(warnOfRule(reading.rule)).toEqual({
    message: expect.stringContaining("matches no command"),
    advice: `Write ${JSON.stringify(meant)}.`,
  });
});

test("[PRM-8] an allow rule for a misspelt tool is invalid; a bare name may be a custom tool", () => {
  expect(parseRule("Bahs(ls)", { list: "allow" })).toEqual({
    type: "invalid",
    reason: 'there is no tool "Bahs"',
    advice: 'Did you mean "Bash"?',
  });
  expect(parseRule("Reads", { list: "allow" }).type).toBe("rule");
});

test.each([
  "Bash(git push:*)",
  "Bash(git * push)",
  "Bash",
  "Read(a:*b)",
  "WebFetch(domain:x.y)",
  "Bash(lsof -i:8080)",
])("[PRM-8] %s is taken as it is written", (text) => {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type === "invalid") throw new Error(reading.reason);
  expect(warnOfRule(reading.rule)).toBeUndefined();
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatRule, parseRule, type RuleList, type RuleSpecifier, readRule } from "./parse-rule.ts";

function specifierOf(text: string, list?: RuleList): RuleSpecifier | string {
  const reading = parseRule(text, list === undefined ? {} : { list });
  return reading.type === "rule" ? reading.rule.specifier : `invalid: ${reading.reason}`;
}

const command = (match: "exact" | "prefix" | "wildcard", text: string) => ({ type: "command", match, text });

describe("rules [PRM-8]", () => {
  it.each<[string, unknown]>([
    ["Read", { type: "whole" }],
    [" Read ", { type: "whole" }],
    ["Bash(*)", { type: "whole" }],
    ["WebSearch(*)", { type: "whole" }],
    ["Bash(npm run build)", command("exact", "npm run build")],
    ["Bash(npm run *)", command("prefix", "npm run")],
    ["Bash(npm run:*)", command("prefix", "npm run")],
    ["Bash(npm run test:*)", command("prefix", "npm run test")],
    ["Bash(timeout:*)", command("prefix", "timeout")],
    ["Bash(command:*)", command("prefix", "command")],
    ["Bash(ls*)", command("wildcard", "ls*")],
    ["Bash(git * main)", command("wildcard", "git * main")],
    ["Bash(git * main:*)", command("wildcard", "git * main *")],
    ["Bash(* --version)", command("wildcard", "* --version")],
    ["Bash(git:* push)", command("wildcard", "git:* push")],
    ["Bash(echo $(date))", command("exact", "echo $(date)")],
    ['Bash(git commit -m "done :)")', command("exact", 'git commit -m "done :)"')],
    ['Bash(grep "main(" src)', command("exact", 'grep "main(" src')],
    ["Bash(cat <<'E'\nx\nE\n)", command("exact", "cat <<'E'\nx\nE")],
    ["PowerShell(Get-Item *)", command("prefix", "Get-Item")],
    ["Read(//etc/hosts)", { type: "path", anchor: "root", pattern: "etc/hosts" }],
    ["Edit(~/notes/**)", { type: "path", anchor: "home", pattern: "notes/**" }],
    ["Edit(/src/**)", { type: "path", anchor: "settings", pattern: "src/**" }],
    ["Read(./.env)", { type: "path", anchor: "cwd", pattern: "./.env" }],
    ["Read(*.key)", { type: "path", anchor: "cwd", pattern: "*.key" }],
    ["MultiEdit(src/*)", { type: "path", anchor: "cwd", pattern: "src/*" }],
    ["Edit(*)", { type: "path", anchor: "cwd", pattern: "*" }],
    ["WebFetch(domain:Example.com)", { type: "domain", domain: "example.com" }],
    ["WebFetch(domain:*.example.com)", { type: "domain", domain: "*.example.com" }],
    ["WebFetch(domain:*)", { type: "whole" }],
    ["WebFetch(https://example.com/x)", { type: "text", text: "https://example.com/x" }],
    ["mcp__ide", { type: "mcp", server: "ide", glob: false }],
    ["mcp__ide__*", { type: "mcp", server: "ide", glob: false }],
    ["mcp__ide__*(*)", { type: "mcp", server: "ide", glob: false }],
    ["mcp__ide__get", { type: "mcp", server: "ide", tool: "get", glob: false }],
    ["mcp__ide__get_*", { type: "mcp", server: "ide", tool: "get_*", glob: true }],
    ["mcp__plugin_a_b__c__d", { type: "mcp", server: "plugin_a_b", tool: "c__d", glob: false }],
    ["Agent(reviewer)", { type: "agent", names: ["reviewer"] }],
    ["Task(a, b)", { type: "agent", names: ["a", "b"] }],
    ["Agent(plugin:reviewer)", { type: "agent", names: ["plugin:reviewer"] }],
    ["Skill(commit)", { type: "skill", name: "commit", anyArguments: false }],
    ["Skill(commit *)", { type: "skill", name: "commit", anyArguments: true }],
    ["Skill(plugin:commit:*)", { type: "skill", name: "plugin:commit", anyArguments: true }],
    ["TodoWrite(x)", { type: "text", text: "x" }],
  ])("reads %j the same in every list", (text, expected) => {
    expect(specifierOf(text)).toEqual(expected);
    expect(specifierOf(text, "allow")).toEqual(expected);
  });

  it.each<[string, unknown]>([
    ["*", { type: "toolGlob" }],
    ["B*", { type: "toolGlob" }],
    ["mcp__*", { type: "toolGlob" }],
    ["mcp__git*", { type: "toolGlob" }],
    ["Agent(model:opus)", { type: "parameter", name: "model", value: "opus" }],
    ["Bash(run_in_background:true)", { type: "parameter", name: "run_in_background", value: "true" }],
    ["mcp__db__query(mode: write*)", { type: "parameter", name: "mode", value: "write*" }],
  ])("takes %j to restrict but not to allow", (text, expected) => {
    expect(specifierOf(text, "deny")).toEqual(expected);
    expect(specifierOf(text, "ask")).toEqual(expected);
    expect(specifierOf(text, "allow")).toMatch(/^invalid/);
  });

  it.each([
    "Read(*)",
    "Edit(**)",
  ])("lets %j restrict every file, and allow only those of the folder", (text) => {
    expect(specifierOf(text, "deny")).toEqual({ type: "whole" });
    expect(specifierOf(text, "allow")).toMatchObject({ type: "path", anchor: "cwd" });
  });

  it.each([
    ["", /empty/, /Remove/],
    ["   ", /empty/, /Remove/],
    ["Bash(rm *", /is missing the closing/, /End the rule/],
    ["Bash(echo $(date)", /is missing the closing/, /End the rule/],
    ["Bash rm)", /not opened/, /Add/],
    ["(ls *)", /no tool/, /Bash\(ls \*\)/],
    ["Bash(ls) && Bash(cat)", /text after/, /one rule/],
    ["Bash(ls) x", /text after/, /one rule/],
    ["Bash()", /nothing in its parentheses/, /Write Bash/],
    ["Bash(:*)", /no command/, /Write Bash/],
    ["Edit:*", /colon/, /^Write Edit or Edit\(\*\)\.$/],
    ["mcp__flow__:*", /colon/, /^Write mcp__flow__\*\.$/],
    ["npm run test", /not a tool/, /Bash\(npm run test\)/],
    ["Bash (ls)", /not a tool/, /name/],
    ["Bash(rm\u0000 *)", /control character/, /Remove/],
    ["Bash(\u001b[2J)", /control character/, /Remove/],
    ["Bash(command:ls)", /applies to anyway/, /Bash\(ls\)/],
    ["B*(x)", /star and parentheses/, /Name one/],
    ["mcp__", /not complete/, /mcp__server__tool/],
    ["mcp__srv__", /not complete/, /mcp__server/],
    ["mcp__srv__tool(x y)", /does not accept a specifier/, /without/],
    ["Agent(,)", /does not name an agent/, /Agent\(name\)/],
    ["Skill(:*)", /names no skill/, /Skill\(name\)/],
  ])("refuses %j and says what to write", (text, reason, advice) => {
    const reading = parseRule(text, { list: "deny" });
    expect(reading).toMatchObject({ type: "invalid" });
    if (reading.type !== "invalid") return;
    expect(reading.reason).toMatch(reason);
    expect(reading.advice).toMatch(advice);
  });

  it.each([
    ["Task", "Agent"],
    ["KillShell", "TaskStop"],
    ["MultiEdit", "Edit"],
    ["bash", "Bash"],
    ["my-tool", "my-tool"],
    ["constructor", "constructor"],
  ])("keeps %s as written and knows it as %s", (tool, canonicalTool) => {
    expect(parseRule(tool)).toMatchObject({ type: "rule", rule: { tool, canonicalTool } });
  });
});

describe("[PRM-8] restrictions that would match nothing", () => {
  it.each([
    ['Read(".env")', /quotes/, /Read\(\.env\)/],
    ["Read('.env')", /quotes/, /Read\(\.env\)/],
    ["Read(!.env)", /exclude files/, /Read\(\.env\)/],
    ["Read($HOME/x)", /not expanded/, /Read\(~\/x\)/],
    [`Edit(\${HOME}/x)`, /not expanded/, /Edit\(~\/x\)/],
    ["Read(.env:*)", /commands/, /Read\(\.env\)/],
    ["WebFetch(domain:example.com/x)", /not a host/, /domain:example\.com\)/],
  ])("%s is an error that says what to write", (text, reason, advice) => {
    for (const list of ["deny", "ask"] as const) {
      const reading = parseRule(text, { list });
      expect(reading).toMatchObject({ type: "invalid", reason: expect.stringMatching(reason) });
      if (reading.type === "invalid") expect(reading.advice).toMatch(advice);
    }
  });

  it.each([
    ["Read(./src/../.env)", "./.env"],
    ["Read(a/b/../../.env)", ".env"],
    ["Read(../x/../.env)", "../.env"],
    ["Edit(~/../project/src/**)", "../project/src/**"],
    ["Edit(//etc/../srv/x)", "srv/x"],
    ["Read(src/$id.tsx)", "src/$id.tsx"],
  ])("%s speaks of %s", (text, pattern) => {
    expect(specifierOf(text, "deny")).toMatchObject({ type: "path", pattern });
  });
});

describe("several patterns in one rule", () => {
  it.each(["deny", "ask"] as const)("are refused under %s, where they would match no command", (list) => {
    expect(parseRule("Bash(rm:*, sudo:*)", { list })).toMatchObject({ type: "invalid" });
    expect(parseRule("Bash(rm:*)", { list })).toMatchObject({ type: "rule" });
  });
});

describe("rules in files", () => {
  it.each([
    [{ tool: "Task", args: "worker" }, "Task(worker)"],
    [{ tool: "Task" }, "Task"],
    [{ toolName: "Bash", ruleContent: "ls *" }, "Bash(ls *)"],
  ])("takes the object form %j for %s [SCP-5]", (value, text) => {
    expect(readRule(value)).toEqual(parseRule(text));
  });

  it.each([
    5,
    null,
    undefined,
    [],
    ["Bash"],
    {},
    { tool: 5 },
    { tool: "Task", args: 5 },
    { tool: "Bash", args: "ls) (" },
    // Taken for the whole tool, these would allow every command.
    { tool: "Bash", command: "git status" },
    { tool: "Bash", pattern: "ls *" },
  ])("refuses %j", (value) => {
    expect(readRule(value).type).toBe("invalid");
  });
});

describe("printing rules", () => {
  const rulish = fc.oneof(
    fc.string(),
    fc
      .tuple(
        fc.constantFrom("Bash", "Read", "Task", "Skill", "WebFetch", "mcp__a__b", "mcp__a", "B*", "Other"),
        fc.string({
          unit: fc.constantFrom(
            "a",
            "b",
            " ",
            "*",
            ":",
            "/",
            "~",
            ".",
            ",",
            "(",
            ")",
            '"',
            "'",
            "\\",
            "domain:",
            "model:",
          ),
        }),
      )
      .map(([tool, inner]) => `${tool}(${inner})`),
  );
  const list = fc.constantFrom<RuleList | undefined>("allow", "ask", "deny", undefined);

  it("gives a text that parses to the same rule again", () => {
    fc.assert(
      fc.property(rulish, list, (text, where) => {
        const options = where === undefined ? {} : { list: where };
        const first = parseRule(text, options);
        if (first.type === "rule") expect(parseRule(formatRule(first.rule), options)).toEqual(first);
      }),
      { numRuns: 400 },
    );
  });

  it("never throws on any JSON value", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        list,
        (value, where) => readRule(value, where === undefined ? {} : { list: where }).type !== undefined,
      ),
    );
  });

  it("reads a rule of a million characters in linear time", () => {
    const long = "( \\*:".repeat(200_000);
    expect(parseRule(`Bash(${long})`).type).toBe("invalid");
    expect(parseRule(`Skill(a${" ".repeat(1_000_000)}b)`).type).toBe("rule");
  });
});

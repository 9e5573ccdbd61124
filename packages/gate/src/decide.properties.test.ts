import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decide, type PermissionPolicy } from "./decide.ts";
import { type CallToJudge, gatherCallFacts } from "./gather-call-facts.ts";
import { permissionModes } from "./permission-policy.ts";
import { parseRule, type RuleList } from "./rules/parse-rule.ts";

function rules(list: RuleList, ...texts: readonly string[]) {
  return texts.map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: "/p" };
  });
}

async function judge(call: CallToJudge, policy: Partial<PermissionPolicy>) {
  const lists = { allow: [], ask: [], deny: [] };
  const whole: PermissionPolicy = {
    mode: "default",
    ...lists,
    workingDirectories: ["/p"],
    home: "/h",
    ...policy,
  };
  return decide(await gatherCallFacts(call, { policy: whole, directory: "/p" }), whole);
}

function bash(command: string): CallToJudge {
  return { tool: "Bash", effect: "execute", input: { command } };
}

const calls: readonly CallToJudge[] = [
  { tool: "Read", effect: "read", input: { file_path: "/p/a.ts" } },
  { tool: "Read", effect: "read", input: { file_path: "/q/.env" } },
  { tool: "Write", effect: "edit", input: { file_path: "/p/src/a.ts" } },
  { tool: "Write", effect: "edit", input: { file_path: "/p/.mcp.json" } },
  { tool: "WebFetch", effect: "network", input: { url: "https://example.com/" } },
  { tool: "mcp__x__z", effect: "read", input: {}, mcp: { server: "x", tool: "z" } },
  { tool: "Agent", effect: "spawn", input: { subagent_type: "Explore" } },
  { tool: "AskUserQuestion", effect: "interact", input: {} },
];

describe("[PRM-1, PRM-9] whatever the rules and the mode", () => {
  const rank = { deny: 0, ask: 1, allow: 2 };
  const rule = fc.constantFrom(
    "Bash",
    "Bash(rm *)",
    "Bash(npm *)",
    "Bash(git push:*)",
    "Read(.env)",
    "Read(//q/**)",
    "Edit(src/**)",
    "Edit",
    "WebFetch(domain:example.com)",
    "WebFetch",
    "Agent(Explore)",
    "mcp__x",
    "mcp__x__z",
  );
  const mode = fc.constantFrom(...permissionModes);
  const command = fc.constantFrom(
    "npm publish",
    "ls",
    "rm -rf src",
    "cat .env",
    "echo x > src/a",
    "git push",
    "x $(y)",
  );
  const call = fc.oneof(fc.constantFrom(...calls), command.map(bash));

  test("adding a deny rule never widens", async () => {
    await fc.assert(
      fc.asyncProperty(
        call,
        mode,
        fc.array(rule),
        fc.array(rule),
        rule,
        async (each, inMode, allow, deny, more) => {
          const policy = { mode: inMode, allow: rules("allow", ...allow) };
          const before = await judge(each, { ...policy, deny: rules("deny", ...deny) });
          const after = await judge(each, { ...policy, deny: rules("deny", ...deny, more) });
          expect(rank[after.type]).toBeLessThanOrEqual(rank[before.type]);
        },
      ),
    );
  });

  test("an allowed and a denied command, put together in any way, are never allowed", async () => {
    const joints = [
      (a: string, b: string) => `${a}; ${b}`,
      (a: string, b: string) => `${b} && ${a}`,
      (a: string, b: string) => `${a} || ${b}`,
      (a: string, b: string) => `${a} | ${b}`,
      (a: string, b: string) => `${b} & ${a}`,
      (a: string, b: string) => `${a}\n${b}`,
      (a: string, b: string) => `${a} $(${b})`,
      (a: string, b: string) => `${a} "\`${b}\`"`,
      (a: string, b: string) => `${a} <(${b})`,
      (a: string, b: string) => `(${a}; ${b})`,
      (a: string, b: string) => `{ ${a}; ${b}; }`,
      (a: string, b: string) => `if ${a}; then ${b}; fi`,
      (a: string, b: string) => `for x in 1; do ${a}; ${b}; done`,
      (a: string, b: string) => `${a} && timeout 5 ${b}`,
      (a: string, b: string) => `${a}; A=1 ${b}`,
      (a: string, b: string) => `${a}; sh -c '${b}'`,
    ];
    const denied = fc.constantFrom("rm x", "rm -rf src", "/bin/rm x", "r\\m x", "'rm' x");
    const allowed = fc.constantFrom("ls", "npm test", "echo hello");
    const policy = {
      allow: rules("allow", "Bash(npm test)", "Bash(sh -c *)"),
      deny: rules("deny", "Bash(rm *)"),
    };
    expect((await judge(bash("npm test; echo hello"), policy)).type).toBe("allow");
    await fc.assert(
      fc.asyncProperty(
        allowed,
        denied,
        fc.array(fc.constantFrom(...joints), { minLength: 1, maxLength: 3 }),
        mode,
        async (good, bad, ways, inMode) => {
          const text = ways.reduce<string>((inner, join) => join(good, inner), bad);
          expect((await judge(bash(text), { ...policy, mode: inMode })).type).not.toBe("allow");
        },
      ),
    );
  });
});

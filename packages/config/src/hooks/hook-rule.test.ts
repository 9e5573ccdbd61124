import { describe, expect, test } from "vitest";
import type { FiredEvent } from "./hook-input.ts";
import {
  describeHook,
  type HookHandler,
  type HookOrigin,
  type SourcedHookRule,
  selectHooks,
} from "./hook-rule.ts";
import { matchSubject } from "./match-subject.ts";

describe("[HKS-4] a matcher", () => {
  test.each<[string | undefined, string, boolean]>([
    [undefined, "Bash", true],
    ["", "Bash", true],
    [" * ", "Bash", true],
    ["Bash", "Bash", true],
    ["Bash", "TaskOutput", false],
    ["BashOutput", "TaskOutput", true],
    ["bash", "Bash", true],
    ["bash", "mcp__bash", false],
    ["Edit|Write", "Write", true],
    ["Edit | Write", "Write", true],
    ["Edit, Write", "Write", true],
    ["Edit|Write", "NotebookEdit", false],
    ["MultiEdit", "Edit", true],
    ["View|LS", "Read", true],
    ["View|LS", "Glob", true],
    ["^View$", "Read", true],
    ["^(?!Read$).*", "Read", false],
    ["Task", "Agent", true],
    ["Agent", "Task", true],
    ["^Task$", "Agent", true],
    ["general-purpose", "general-purpose", true],
    ["mcp__memory__.*", "mcp__memory__create", true],
    ["mcp__.*__write.*", "mcp__files__write_file", true],
    ["mcp__memory", "mcp__memory__create", false],
    ["Web.*", "WebFetch", true],
    ["^(?!Bash$).*", "Bash", false],
    ["^(?!Bash$).*", "Read", true],
    ["Notebook.*|Edit", "Edit", true],
  ])("%j against %s", (matcher, subject, expected) => {
    expect(matchSubject(matcher, subject)).toBe(expected ? "match" : "no-match");
  });

  test.each([
    "*Bash",
    "(",
    "[a-",
    "^(a+)+$",
    "(x+x+)+y",
    `.${"(a|a)".repeat(1_000)}`,
  ])("%j is unusable and does not hang", (matcher) => {
    expect(matchSubject(matcher, `${"a".repeat(40)}${"x".repeat(40)}!`)).toBe("unusable");
  });
});

const settings: HookOrigin = { type: "settings", file: "/s.json" };
const rule = (
  command: string,
  more: { event?: string; matcher?: string; handler?: Partial<HookHandler>; origin?: HookOrigin } = {},
): SourcedHookRule => ({
  hook: {
    event: more.event ?? "PreToolUse",
    matcher: more.matcher,
    handler: { type: "command", command, ...more.handler },
  },
  origin: more.origin ?? settings,
});

function select(
  rules: readonly SourcedHookRule[],
  question: Partial<Parameters<typeof selectHooks>[1]> = {},
) {
  const asked = { event: "PreToolUse" as FiredEvent, subject: "Bash", agentId: "main", ...question };
  const { selected, diagnostics } = selectHooks(rules, asked);
  return { commands: selected.map(({ handler }) => handler.command), diagnostics };
}

describe("[HKS-2, HKS-4] the hooks of an event", () => {
  test("are those of its name whose matcher fits, in the order written", () => {
    const rules = [
      rule("b", { matcher: "Bash" }),
      rule("a"),
      rule("other", { event: "PostToolUse" }),
      rule("edits", { matcher: "Edit|Write" }),
    ];
    expect(select(rules).commands).toEqual(["b", "a"]);
  });

  test("run once, however often and wherever the same handler is written", () => {
    const rules = [
      rule("a", { matcher: "Bash", handler: { timeout: 5 } }),
      rule("a", { handler: { timeout: 5 }, origin: { type: "settings", file: "/other.json" } }),
      rule("a", { handler: { timeout: 6 } }),
    ];
    expect(select(rules).commands).toEqual(["a", "a"]);
  });

  test("are two when two plugins write the same command", () => {
    const plugin = (name: string): HookOrigin => ({ type: "plugin", name, root: `/p/${name}` });
    const command = `\${CLAUDE_PLUGIN_ROOT}/check`;
    const rules = [rule(command, { origin: plugin("one") }), rule(command, { origin: plugin("two") })];
    expect(select(rules).commands).toHaveLength(2);
  });

  test("of an agent's definition fire only for that agent, those of settings for all", () => {
    const own: HookOrigin = { type: "agent", agentId: "a-1", name: "reviewer" };
    const rules = [rule("everywhere"), rule("own", { origin: own })];
    expect(select(rules, { agentId: "a-1" }).commands).toEqual(["everywhere", "own"]);
    expect(select(rules, { agentId: "a-2" }).commands).toEqual(["everywhere"]);
    expect(select(rules).commands).toEqual(["everywhere"]);
  });

  test("ignore a matcher where the event has nothing to match", () => {
    expect(
      select([rule("a", { event: "Stop", matcher: "Bash" })], { event: "Stop", subject: undefined }).commands,
    ).toEqual(["a"]);
  });

  test("with a condition run when the call meets it, and when that cannot be reported", () => {
    const rules = [rule("git", { handler: { if: "Bash(git *)" } })];
    expect(select(rules, { meetsCondition: (text) => text === "Bash(git *)" }).commands).toEqual(["git"]);
    expect(select(rules, { meetsCondition: () => false }).commands).toEqual([]);
    const doubt = () => {
      throw new Error("no grammar");
    };
    expect(select(rules, { meetsCondition: doubt }).commands).toEqual(["git"]);
  });

  test("with a condition never run at an event that is no call", () => {
    const rules = [rule("a", { event: "Stop", handler: { if: "Bash" } })];
    expect(select(rules, { event: "Stop", subject: undefined }).commands).toEqual([]);
  });

  test("with a matcher that cannot be used run when they guard, else not, and it is reported", () => {
    const guard = select([rule("a", { matcher: "*Bash" })]);
    expect(guard.commands).toEqual(["a"]);
    expect(guard.diagnostics[0]).toContain("run for every call");
    const other = select([rule("a", { event: "PostToolUse", matcher: "*Bash" })], { event: "PostToolUse" });
    expect(other.commands).toEqual([]);
    expect(other.diagnostics[0]).toContain("did not run");
  });
});

test("a hook is named by what it runs and where it is", () => {
  const handler: HookHandler = { type: "command", command: `check\n${"x".repeat(200)}` };
  expect(describeHook({ handler, origin: settings })).toBe(
    `command hook "check ${"x".repeat(71)}..." (/s.json)`,
  );
});

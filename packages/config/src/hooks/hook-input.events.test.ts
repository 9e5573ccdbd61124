import { describe, expect, it } from "vitest";
import { firedHookEvents, hookEventNames, hookEvents, isHookEventName } from "./hook-input.ts";

describe("hook events", () => {
  it("knows all 33 events that are in people's files", () => {
    expect(hookEventNames).toHaveLength(33);
  });

  it("fires exactly the promised events [HKS-1, TEA-6]", () => {
    const promised = `PreToolUse PostToolUse PostToolUseFailure PermissionRequest UserPromptSubmit SessionStart
      SessionEnd Stop SubagentStart SubagentStop PreCompact PostCompact Notification
      TeammateIdle TaskCreated TaskCompleted`;
    expect([...firedHookEvents].sort()).toEqual(promised.split(/\s+/).sort());
  });

  it("matches agent events on the agent type and tool events on the tool name [HKS-4]", () => {
    expect(hookEvents.SubagentStop.matches).toBe("agent type");
    expect(hookEvents.PreToolUse.matches).toBe("tool name");
    expect(hookEvents.Stop.matches).toBe("none");
  });

  it.each([
    "pretooluse",
    "__proto__",
    "constructor",
    "toString",
    "",
    3,
    null,
  ])("does not recognize %j", (name) => {
    expect(isHookEventName(name)).toBe(false);
  });
});

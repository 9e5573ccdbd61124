import type { HookCallback, HookEvent, Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import { bash, createSdkStage, ofType, read, resultOf, write } from "./sdk-stage.ts";

const free: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };
const on = (event: HookEvent, callback: HookCallback, more: object = {}): Options => ({
  hooks: { [event]: [{ hooks: [callback], ...more }] },
});
const body = (stage: { provider: { requests: readonly { body: unknown }[] } }, at: number) =>
  JSON.stringify(stage.provider.requests[at]?.body);

describe("hook callbacks [DRP-1]", () => {
  test("PreToolUse changes the input of a call", async () => {
    const stage = await createSdkStage([bash("echo one"), "Done."]);
    await stage.run("go", {
      ...free,
      ...on("PreToolUse", async (input) => ({
        hookSpecificOutput: {
          hookEventName: "PreToolUse",
          permissionDecision: "allow",
          updatedInput: { ...((input as { tool_input: object }).tool_input as object), command: "echo two" },
        },
      })),
    });
    expect(body(stage, 1)).toContain("two");
  });

  test("a matcher leaves other tools alone", async () => {
    const stage = await createSdkStage([read("a.txt"), "Done."]);
    stage.write("a.txt", "text");
    const heard: string[] = [];
    const callback: HookCallback = async () => {
      heard.push("called");
      return {};
    };
    await stage.run("go", { ...free, ...on("PreToolUse", callback, { matcher: "Bash|Write" }) });
    expect(heard).toEqual([]);
  });

  test("PostToolUse reads the result and adds to it", async () => {
    const stage = await createSdkStage([bash("echo hello"), "Done."]);
    const heard: unknown[] = [];
    await stage.run("go", {
      ...free,
      ...on("PostToolUse", async (input, toolUseId) => {
        heard.push([(input as { tool_name: string }).tool_name, typeof toolUseId]);
        return { hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "mind the gap" } };
      }),
    });
    expect(heard).toEqual([["Bash", "string"]]);
    expect(body(stage, 1)).toContain("mind the gap");
  });

  test("PostToolUseFailure hears of a call that failed", async () => {
    const stage = await createSdkStage([read("missing.txt"), "Done."]);
    const heard: unknown[] = [];
    await stage.run("go", {
      ...free,
      ...on("PostToolUseFailure", async (input) => {
        heard.push((input as { tool_name: string }).tool_name);
        return {};
      }),
    });
    expect(heard).toEqual(["Read"]);
  });

  test("UserPromptSubmit adds to the prompt", async () => {
    const stage = await createSdkStage(["Done."]);
    await stage.run(
      "the prompt",
      on("UserPromptSubmit", async (input) => ({
        hookSpecificOutput: {
          hookEventName: "UserPromptSubmit",
          additionalContext: `seen: ${(input as { prompt: string }).prompt}`,
        },
      })),
    );
    expect(body(stage, 0)).toContain("seen: the prompt");
  });

  test("UserPromptSubmit blocks a prompt: informational, and a result without turns", async () => {
    const stage = await createSdkStage([]);
    const finished = await stage.run(
      "secret",
      on("UserPromptSubmit", async () => ({ decision: "block", reason: "no secrets" })),
    );
    expect(JSON.stringify(ofType(finished, "system", "informational"))).toContain("no secrets");
    expect(resultOf(finished)).toMatchObject({ num_turns: 0, is_error: false });
    expect(stage.provider.requests).toHaveLength(0);
  });

  test("SessionStart and SessionEnd are heard once", async () => {
    const stage = await createSdkStage(["Done."]);
    const heard: string[] = [];
    const callback: HookCallback = async (input) => {
      heard.push(input.hook_event_name);
      return {};
    };
    await stage.run("go", {
      hooks: { SessionStart: [{ hooks: [callback] }], SessionEnd: [{ hooks: [callback] }] },
    });
    expect(heard[0]).toBe("SessionStart");
    expect(heard.filter((event) => event === "SessionStart")).toHaveLength(1);
  });

  test("Stop makes the agent continue once", async () => {
    const stage = await createSdkStage(["First.", "Second."]);
    let times = 0;
    const finished = await stage.run(
      "go",
      on("Stop", async () => {
        times += 1;
        return times === 1 ? { decision: "block", reason: "one more thing" } : {};
      }),
    );
    expect(resultOf(finished)).toMatchObject({ result: "Second." });
    expect(body(stage, 1)).toContain("one more thing");
  });

  test("SubagentStart and SubagentStop show of a child", async () => {
    const stage = await createSdkStage([
      {
        calls: [
          {
            name: "Agent",
            input: {
              description: "look",
              prompt: "Look.",
              subagent_type: "helper",
              run_in_background: false,
            },
          },
        ],
      },
      { match: "You help.", text: "Looked." },
      "Done.",
    ]);
    const heard: string[] = [];
    const callback: HookCallback = async (input) => {
      heard.push(`${input.hook_event_name} ${(input as { agent_type: string }).agent_type}`);
      return {};
    };
    await stage.run("go", {
      ...free,
      agents: { helper: { description: "Helps.", prompt: "You help." } },
      hooks: { SubagentStart: [{ hooks: [callback] }], SubagentStop: [{ hooks: [callback] }] },
    });
    expect(heard).toEqual(["SubagentStart helper", "SubagentStop helper"]);
  });

  test("PreToolUse binds children too", async () => {
    const stage = await createSdkStage([
      {
        calls: [
          {
            name: "Agent",
            input: {
              description: "look",
              prompt: "Look.",
              subagent_type: "helper",
              run_in_background: false,
            },
          },
        ],
      },
      { match: "You help.", ...bash("touch made") },
      { match: "You help.", text: "Denied." },
      "Done.",
    ]);
    const heard: unknown[] = [];
    await stage.run("go", {
      ...free,
      agents: { helper: { description: "Helps.", prompt: "You help." } },
      ...on(
        "PreToolUse",
        async (input) => {
          heard.push(typeof (input as { agent_id?: string }).agent_id);
          return { decision: "block", reason: "not for children" };
        },
        { matcher: "Bash" },
      ),
    });
    expect(heard).toEqual(["string"]);
    expect(body(stage, 2)).toContain("not for children");
  });

  test("a callback that throws lets the call run, with a warning", async () => {
    const stage = await createSdkStage([bash("echo ran"), "Done."]);
    const finished = await stage.run("go", {
      ...free,
      ...on("PreToolUse", async () => {
        throw new Error("broken hook");
      }),
    });
    expect(body(stage, 1)).toContain("ran");
    expect(JSON.stringify(ofType(finished, "system", "informational"))).toContain("broken hook");
  });

  test("with onFailure block a callback that throws stops the call", async () => {
    const stage = await createSdkStage([bash("echo ran"), "Done."]);
    await stage.run("go", {
      ...free,
      ...on(
        "PreToolUse",
        async () => {
          throw new Error("broken hook");
        },
        { onFailure: "block" },
      ),
    });
    expect(body(stage, 1)).toContain("broken hook");
    expect(body(stage, 1)).not.toContain('"ran');
  });

  test("a callback that takes too long is cancelled, and the call does not run", async () => {
    const stage = await createSdkStage([bash("touch made"), "Done."]);
    let isAborted = false;
    await stage.run("go", {
      ...free,
      ...on(
        "PreToolUse",
        (_, __, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              isAborted = true;
              resolve({});
            });
          }),
        { timeout: 0.1 },
      ),
    });
    expect(isAborted).toBe(true);
    expect(body(stage, 1)).toContain("did not end within");
  });

  test("an answer { async: true } holds nothing up", async () => {
    const stage = await createSdkStage([bash("echo ran"), "Done."]);
    await stage.run("go", { ...free, ...on("PreToolUse", async () => ({ async: true })) });
    expect(body(stage, 1)).toContain("ran");
  });

  test("PostToolBatch hears all calls of one answer, and adds to the conversation", async () => {
    const stage = await createSdkStage([
      {
        calls: [
          { name: "Read", input: { file_path: "a.txt" } },
          { name: "Read", input: { file_path: "b.txt" } },
        ],
      },
      "Done.",
    ]);
    stage.write("a.txt", "a");
    stage.write("b.txt", "b");
    const heard: number[] = [];
    await stage.run(
      "go",
      on("PostToolBatch", async (input) => {
        heard.push((input as { tool_calls: unknown[] }).tool_calls.length);
        return { hookSpecificOutput: { hookEventName: "PostToolBatch", additionalContext: "both read" } };
      }),
    );
    expect(heard).toEqual([2]);
    expect(body(stage, 1)).toContain("both read");
  });

  test("hook events are shown where they are asked for", async () => {
    const stage = await createSdkStage([bash("echo ran"), "Done."]);
    const finished = await stage.run("go", {
      ...free,
      includeHookEvents: true,
      ...on("PreToolUse", async () => ({})),
    });
    expect(ofType(finished, "system", "hook_started")).toHaveLength(1);
    expect(ofType(finished, "system", "hook_response")[0]).toMatchObject({ outcome: "success" });
  });

  test("a hook that says continue: false ends the turn", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), "Never."]);
    const finished = await stage.run("go", {
      ...free,
      ...on("PostToolUse", async () => ({ continue: false, stopReason: "enough" })),
    });
    expect(stage.provider.requests).toHaveLength(1);
    expect(resultOf(finished)).toBeDefined();
  });
});

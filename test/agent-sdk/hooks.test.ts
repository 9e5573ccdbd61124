import { existsSync } from "node:fs";
import { join } from "node:path";
import type { HookCallback, HookEvent, Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import { createPlace } from "../scenarios/run-command.ts";
import { runInside } from "./run-inside.ts";
import { bash, callHelper, createSdkStage, ofType, read, resultOf, write } from "./sdk-stage.ts";

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
    const received: string[] = [];
    const callback: HookCallback = async () => {
      received.push("called");
      return {};
    };
    await stage.run("go", { ...free, ...on("PreToolUse", callback, { matcher: "Bash|Write" }) });
    expect(received).toEqual([]);
  });

  test("PostToolUse reads the result and adds to it", async () => {
    const stage = await createSdkStage([bash("echo hello"), "Done."]);
    const received: unknown[] = [];
    await stage.run("go", {
      ...free,
      ...on("PostToolUse", async (input, toolUseId) => {
        received.push([(input as { tool_name: string }).tool_name, typeof toolUseId]);
        return { hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "mind the gap" } };
      }),
    });
    expect(received).toEqual([["Bash", "string"]]);
    expect(body(stage, 1)).toContain("mind the gap");
  });

  test("PostToolUseFailure receives a call that failed", async () => {
    const stage = await createSdkStage([read("missing.txt"), "Done."]);
    const received: unknown[] = [];
    await stage.run("go", {
      ...free,
      ...on("PostToolUseFailure", async (input) => {
        received.push((input as { tool_name: string }).tool_name);
        return {};
      }),
    });
    expect(received).toEqual(["Read"]);
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

  test("SessionStart and SessionEnd fire once", async () => {
    const stage = await createSdkStage(["Done."]);
    const received: string[] = [];
    const callback: HookCallback = async (input) => {
      received.push(input.hook_event_name);
      return {};
    };
    await stage.run("go", {
      hooks: { SessionStart: [{ hooks: [callback] }], SessionEnd: [{ hooks: [callback] }] },
    });
    expect(received[0]).toBe("SessionStart");
    expect(received.filter((event) => event === "SessionStart")).toHaveLength(1);
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
    const stage = await createSdkStage([callHelper(), { match: "You help.", text: "Looked." }, "Done."]);
    const received: string[] = [];
    const callback: HookCallback = async (input) => {
      received.push(`${input.hook_event_name} ${(input as { agent_type: string }).agent_type}`);
      return {};
    };
    await stage.run("go", {
      ...free,
      agents: { helper: { description: "Helps.", prompt: "You help." } },
      hooks: { SubagentStart: [{ hooks: [callback] }], SubagentStop: [{ hooks: [callback] }] },
    });
    expect(received).toEqual(["SubagentStart helper", "SubagentStop helper"]);
  });

  test("PreToolUse binds children too", async () => {
    const stage = await createSdkStage([
      callHelper(),
      { match: "You help.", ...bash("touch made") },
      { match: "You help.", text: "Denied." },
      "Done.",
    ]);
    const received: unknown[] = [];
    await stage.run("go", {
      ...free,
      agents: { helper: { description: "Helps.", prompt: "You help." } },
      ...on(
        "PreToolUse",
        async (input) => {
          received.push(typeof (input as { agent_id?: string }).agent_id);
          return { decision: "block", reason: "not for children" };
        },
        { matcher: "Bash" },
      ),
    });
    expect(received).toEqual(["string"]);
    expect(body(stage, 2)).toContain("not for children");
  });

  test.each<[string, () => unknown]>([
    ["throws", () => Promise.reject(new Error("broken guard"))],
    ["answers with a text", () => "deny (broken guard)"],
    ["answers with a list", () => ["broken guard"]],
    ["answers with a number", () => 1],
    ["answers with fields of something else", () => ({ allowed: false, why: "broken guard" })],
    ["decides with a word that means nothing", () => ({ decision: "broken guard" })],
    ["decides by a flag", () => ({ hookSpecificOutput: { permissionDecision: false } })],
  ])("a PreToolUse callback that %s refuses the call, with the reason [HKS-6]", async (_, answer) => {
    const stage = await createSdkStage([bash("touch made"), "Done."]);
    await stage.run("go", { ...free, ...on("PreToolUse", async () => (await answer()) as object) });
    expect(body(stage, 1)).toContain("failed");
    expect(existsSync(join(stage.cwd, "made"))).toBe(false);
  });

  test("with onFailure continue a callback that throws lets the call run, with a warning [HKS-6]", async () => {
    const stage = await createSdkStage([bash("echo ran"), "Done."]);
    const finished = await stage.run("go", {
      ...free,
      ...on(
        "PreToolUse",
        async () => {
          throw new Error("broken hook");
        },
        { onFailure: "continue" },
      ),
    });
    expect(body(stage, 1)).toContain("ran");
    expect(JSON.stringify(ofType(finished, "system", "informational"))).toContain("broken hook");
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

  test("PostToolBatch receives all calls of one answer, and adds to the conversation", async () => {
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
    const received: number[] = [];
    await stage.run(
      "go",
      on("PostToolBatch", async (input) => {
        received.push((input as { tool_calls: unknown[] }).tool_calls.length);
        return { hookSpecificOutput: { hookEventName: "PostToolBatch", additionalContext: "both read" } };
      }),
    );
    expect(received).toEqual([2]);
    expect(body(stage, 1)).toContain("both read");
  });

  test("hooks of settings are shown where that is asked for; the host knows its own callbacks", async () => {
    const stage = await createSdkStage([bash("echo ran"), "Done."]);
    const hook = { matcher: "Bash", hooks: [{ type: "command", command: "echo '{}'" }] };
    stage.write(".claude/settings.json", JSON.stringify({ hooks: { PreToolUse: [hook] } }));
    const finished = await stage.run("go", {
      ...free,
      includeHookEvents: true,
      settingSources: ["project"],
      ...on("PreToolUse", async () => ({})),
    });
    expect(ofType(finished, "system", "hook_started")).toMatchObject([{ hook_name: "PreToolUse:Bash" }]);
    expect(ofType(finished, "system", "hook_response")).toMatchObject([{ outcome: "success" }]);
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

const stream = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

describe("settings and instructions that were not asked for [DRP-2]", () => {
  async function instructionsWith(settingSources: ("user" | "project" | "local")[]) {
    const stage = await createSdkStage(["Yes."]);
    stage.write("CLAUDE.md", "Word of the project.");
    stage.write("../home/.claude/CLAUDE.md", "Word of the user.");
    await stage.run("hi", { settingSources });
    const asked = JSON.stringify(stage.provider.requests[0]?.body);
    return { project: asked.includes("Word of the project."), user: asked.includes("Word of the user.") };
  }

  test("no source at all sends neither the project's nor the user's instructions", async () => {
    expect(await instructionsWith([])).toEqual({ project: false, user: false });
  });

  test("the project's source does not bring the user's instructions", async () => {
    expect(await instructionsWith(["project"])).toEqual({ project: true, user: false });
  });

  test("the user's source does not bring the project's instructions", async () => {
    expect(await instructionsWith(["user"])).toEqual({ project: false, user: true });
  });
});

describe("what cannot be honoured [DRP-2]", () => {
  /** Sends lines to the command as a host would, and ends its input after all were answered. */
  async function talk(lines: readonly object[]) {
    const environment = { ANTHROPIC_API_KEY: "x" };
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const { code, out } = await runInside(createPlace(), stream, { environment, input });
    const answers = out
      .split("\n")
      .filter((line) => line.includes("control_response"))
      .map((line) => JSON.parse(line).response);
    return { code, answers };
  }

  const request = (id: string, inner: object) => ({
    type: "control_request",
    request_id: id,
    request: inner,
  });

  test.each([
    ["a hook for an event that there is not", { hooks: { NoSuchEvent: [{ hookCallbackIds: ["h"] }] } }],
    ["a matcher without callbacks", { hooks: { PreToolUse: [{ matcher: "Bash" }] } }],
    ["an agent without a prompt or description", { agents: { a: { tools: ["Read"] } } }],
    ["a member that is not known", { somethingNew: { on: true } }],
    ["managed settings that would have to be checked", { managedSettings: { model: "x" } }],
    ["a schema that is none", { jsonSchema: "text" }],
  ])("%s is an error answer and a non-zero exit", async (_, members) => {
    const { code, answers } = await talk([request("1", { subtype: "initialize", ...members })]);
    expect(answers).toEqual([
      { subtype: "error", request_id: "1", error: expect.stringContaining("initialize cannot be honoured") },
    ]);
    expect(code).toBe(1);
  });

  test("an unknown subtype gets an error answer, and the session continues", async () => {
    const { code, answers } = await talk([
      request("1", { subtype: "initialize" }),
      request("2", { subtype: "fly_to_the_moon" }),
      request("3", { subtype: "get_usage" }),
    ]);
    const found = Object.fromEntries(answers.map(({ request_id: id, ...rest }) => [id, rest]));
    expect(found["2"]).toEqual({ subtype: "error", error: expect.stringContaining("fly_to_the_moon") });
    expect([found["1"]?.subtype, found["3"]?.subtype]).toEqual(["success", "success"]);
    expect(code).toBe(0);
  });
});

describe("no key [CLI-7]", () => {
  test.each([
    ["a named model", ["-p", "hi", "--model", "sonnet"], {}],
    ["JSON", ["-p", "hi", "--output-format", "json"], {}],
    ["CI", ["-p", "hi"], { CI: "true" }],
  ])("with %s is an error with exit 1, and no offline answer", async (_, flags, environment) => {
    const { code, out, err } = await runInside(createPlace(), flags, { environment });
    expect(code).toBe(1);
    expect(err).toContain("No API key is configured");
    expect(out).not.toContain("[offline model");
  });

  test("the offline model answers where it is named", async () => {
    const flags = ["-p", "hi", "--model", "offline", "--output-format", "json"];
    const { code, out } = await runInside(createPlace(), flags, { environment: { CI: "true" } });
    expect(code).toBe(0);
    expect(Object.keys(JSON.parse(out).modelUsage)).toEqual(["offline"]);
  });
});

describe("shell lines [DRP-3]", () => {
  const environment = { ANTHROPIC_API_KEY: "x" };

  test("json with --verbose is a list of all messages", async () => {
    const flags = ["-p", "hi", "--model", "offline", "--output-format", "json", "--verbose"];
    const { code, out } = await runInside(createPlace(), flags);
    const types = JSON.parse(out).map(({ type }: { type: string }) => type);
    expect([code, types[0], types.at(-1)]).toEqual([0, "system", "result"]);
  });

  test("a flag without a meaning here is named in a note", async () => {
    const { code, err } = await runInside(createPlace(), ["-p", "hi", "--model", "offline", "--ide"]);
    expect({ code, err }).toEqual({ code: 0, err: "retinue: --ide has no effect here.\n" });
  });

  test("a flag that cannot be honoured is refused by name", async () => {
    const { code, err } = await runInside(createPlace(), ["-p", "hi", "--teleport"], { environment });
    expect(code).not.toBe(0);
    expect(err).toContain("--teleport is not supported");
  });
});

describe("words that are no command [CLI-7]", () => {
  test.each([
    [["plugn", "list"]],
    [["authenticate", "me"]],
    [["agent", "list"]],
  ])("%j is an error and no prompt", async (words) => {
    const { code, err } = await runInside(createPlace(), words, { environment: { ANTHROPIC_API_KEY: "x" } });
    expect(code).toBe(2);
    expect(err).toContain(`There is no command \`${words[0]}\``);
  });
});

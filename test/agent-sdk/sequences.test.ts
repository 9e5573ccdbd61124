import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { readJsonLines } from "../scenarios/run-command.ts";
import { runInside } from "./run-inside.ts";
import { bash, callHelper, createSdkStage, free, type SdkStage, type StageOptions } from "./sdk-stage.ts";

/** What a message is, without what it says. */
function kindOf(message: Record<string, unknown>): string {
  const { type, subtype, status, state, error } = message;
  const { content } = Object(message["message"]) as { content?: string | { type: string }[] };
  const blocks = typeof content === "string" ? "words" : content?.map((block) => block.type).join("+");
  const marks = [
    typeof message["parent_tool_use_id"] === "string" ? "child" : "",
    message["isSynthetic"] === true ? "synthetic" : "",
    type === "assistant" ? (error ?? "") : "",
  ];
  if (type === "assistant" || type === "user") return [type, blocks, ...marks].filter(Boolean).join(" ");
  if (type !== "result")
    return [subtype, status, state, message["hook_event"]].filter((part) => part != null).join(" ");
  const outcome = message["is_error"] === true ? "error" : "ok";
  return `result ${subtype} ${outcome} ${message["num_turns"]} ${message["terminal_reason"] ?? "-"}`;
}

interface Conversation {
  readonly steps: readonly Step[];
  readonly prompt?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  readonly options?: StageOptions;
  readonly env?: Readonly<Record<string, string>>;
  readonly messages: readonly string[];
  /** Where a host reads them in another order. */
  readonly hosted?: readonly string[];
}

const inHelper = (step: object): Step => ({ match: "You help.", ...step });
const helper = { ".claude/agents/helper.md": "---\nname: helper\ndescription: Helps.\n---\nYou help.\n" };
const hook = (command: string) => [{ hooks: [{ type: "command", command }] }];
const settings = (hooks: object) => ({ ".claude/settings.json": JSON.stringify({ hooks }) });
const once = { CLAUDE_CODE_MAX_RETRIES: "1" };
const done = "result success ok 1 completed";

/** The kinds and their order were recorded from Claude Code 2.1.325 with the same scripted model. */
const conversations: Readonly<Record<string, Conversation>> = {
  "a plain answer": { steps: ["Hello."], messages: ["init", "assistant text", done] },
  thinking: {
    steps: [{ thinking: "hmm", text: "Hello." }],
    messages: ["init", "thinking_tokens", "assistant thinking", "assistant text", done],
  },
  "an answer without a word": {
    steps: [{ text: "" }, "Hello."],
    messages: ["init", "user text synthetic", "assistant text", "result success ok 2 completed"],
  },
  "a result of a certain form that is forgotten twice": {
    steps: ["It is 4.", "As I said, 4."],
    flags: ["--json-schema", '{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}'],
    options: {
      outputFormat: {
        type: "json_schema",
        schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      },
    },
    messages: [
      "init",
      "assistant text",
      "user text synthetic",
      "assistant text",
      "result success ok 2 completed",
    ],
  },
  "a command that fails": {
    steps: [{ text: "Trying.", ...bash("exit 3") }, "Done."],
    messages: [
      "init",
      "assistant text",
      "assistant tool_use",
      "user tool_result",
      "assistant text",
      "result success ok 2 completed",
    ],
  },
  "a child that is waited for": {
    files: helper,
    steps: [callHelper(), inHelper(bash("echo c")), inHelper({ text: "Looked." }), "Done."],
    messages: [
      "init",
      "assistant tool_use",
      "task_started",
      "user text child",
      "task_progress",
      "assistant tool_use child",
      "user tool_result child",
      "task_updated",
      "task_notification completed",
      "user tool_result",
      "assistant text",
      "result success ok 2 completed",
    ],
  },
  "a command in the background": {
    steps: [
      { calls: [{ name: "Bash", input: { command: "sleep 0.3", run_in_background: true } }] },
      "Waiting.",
      "Over.",
    ],
    messages: [
      "init",
      "assistant tool_use",
      "background_tasks_changed",
      "task_started",
      "user tool_result",
      "assistant text",
      "result success ok 2 completed",
      "task_updated",
      "task_notification completed",
      "background_tasks_changed",
      "init",
      "assistant text",
      done,
    ],
  },
  "a limit of turns": {
    steps: [bash("echo 1"), "Never."],
    flags: ["--max-turns", "1"],
    options: { maxTurns: 1 },
    messages: ["init", "assistant tool_use", "user tool_result", "result error_max_turns error 2 max_turns"],
  },
  "an answer that is refused twice": {
    steps: [{ text: "I can", stopReason: "refusal", times: 2 }],
    messages: [
      "init",
      "assistant text",
      "informational",
      "user text synthetic",
      "assistant text",
      "model_refusal_no_fallback",
      "assistant text invalid_request",
      "result success error 2 api_error",
    ],
  },
  "an answer that is cut once": {
    steps: [{ text: "Part one", stopReason: "max_tokens" }, "and two."],
    messages: [
      "init",
      "assistant text",
      "user text synthetic",
      "assistant text",
      "result success ok 2 completed",
    ],
  },
  "an answer that is cut again and again": {
    steps: [{ text: "Part", stopReason: "max_tokens", times: 4 }],
    messages: [
      "init",
      "assistant text",
      "user text synthetic",
      "assistant text",
      "user text synthetic",
      "assistant text",
      "user text synthetic",
      "assistant text",
      "assistant text max_output_tokens",
      "result success error 4 api_error",
    ],
  },
  "a request that the provider refuses": {
    steps: [{ failure: "invalid-request", times: "any" }],
    messages: ["init", "assistant text unknown", "result success error 1 api_error"],
  },
  "a provider that is overloaded": {
    steps: [{ failure: "overloaded", retryAfterMs: 1, times: "any" }],
    env: once,
    messages: ["init", "api_retry", "assistant text server_error", "result success error 1 api_error"],
  },
  "a fallback model": {
    steps: [{ failure: "overloaded", retryAfterMs: 1, times: 3 }, "Fallback."],
    flags: ["--fallback-model", "claude-haiku-4-5"],
    options: { fallbackModel: "claude-haiku-4-5" },
    messages: ["init", "api_retry", "api_retry", "model_fallback", "assistant text", done],
  },
  "a word with a slash that is no command": {
    prompt: "/nosuchthing now",
    steps: ["What?"],
    messages: ["init", "assistant text", done],
  },
  "hooks that are shown": {
    files: settings({
      UserPromptSubmit: hook("echo ctx"),
      PreToolUse: hook("echo '{}'"),
      Stop: hook("true"),
      SessionEnd: hook("true"),
    }),
    steps: [bash("echo hi"), "Done."],
    flags: ["--include-hook-events"],
    options: { includeHookEvents: true },
    messages: [
      "hook_started UserPromptSubmit",
      "hook_response UserPromptSubmit",
      "init",
      "assistant tool_use",
      "hook_started PreToolUse",
      "hook_response PreToolUse",
      "user tool_result",
      "assistant text",
      "hook_started Stop",
      "hook_response Stop",
      "result success ok 2 completed",
    ],
  },
  "a hook that makes the agent go on": {
    files: settings({ Stop: hook("[ -e done ] && exit 0; touch done; echo more >&2; exit 2") }),
    steps: ["One.", "Two."],
    messages: [
      "init",
      "assistant text",
      "user text synthetic",
      "notification",
      "assistant text",
      "result success ok 2 completed",
    ],
  },
  "an empty answer": {
    steps: [{ blocks: [] }, "Now."],
    messages: ["init", "user text synthetic", "assistant text", "result success ok 2 completed"],
  },
  "states of the session": {
    steps: ["Hello."],
    env: { CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "1" },
    messages: ["session_state_changed running", "init", "assistant text", done, "session_state_changed idle"],
  },
  "a skill": {
    files: { ".claude/skills/s1/SKILL.md": "---\nname: s1\ndescription: Does.\n---\nDo it.\n" },
    steps: [{ calls: [{ name: "Skill", input: { skill: "s1" } }] }, "Done."],
    messages: [
      "init",
      "assistant tool_use",
      "user tool_result",
      "user text synthetic",
      "assistant text",
      "result success ok 3 completed",
    ],
  },
};

async function prepare({ steps, files = {} }: Conversation): Promise<SdkStage> {
  const stage = await createSdkStage(steps);
  for (const [path, text] of Object.entries(files)) stage.write(path, text);
  return stage;
}

function print(stage: SdkStage, words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const environment = { ANTHROPIC_BASE_URL: stage.provider.url, ANTHROPIC_API_KEY: "x", ...env };
  return runInside(stage, words, { environment });
}

const written = ["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"];

describe.skipIf(process.platform === "win32")("the sequence of messages [DRP-1, CLI-1]", () => {
  test.each(Object.entries(conversations))("with -p: %s", async (_, conversation) => {
    const stage = await prepare(conversation);
    // A person's word for the folder, without which its hooks do not run.
    await print(stage, ["trust", "--yes"]);
    const { prompt = "go", flags = [], env, messages } = conversation;
    const { out, code } = await print(stage, ["-p", prompt, ...written, ...flags], env);
    expect(readJsonLines(out).map(kindOf)).toEqual(messages);
    const last = messages.findLast((kind) => kind.startsWith("result")) ?? "";
    expect(code).toBe(last.includes(" error ") ? 1 : 0);
  });

  test.each(Object.entries(conversations))("under the SDK: %s", async (_, conversation) => {
    const stage = await prepare(conversation);
    const { prompt = "go", options, env, messages, hosted = messages } = conversation;
    const finished = await stage.run(prompt, {
      ...free,
      settingSources: ["project"],
      ...options,
      env: env ?? {},
    });
    expect(finished.messages.map(kindOf)).toEqual(hosted);
    const last = hosted.findLast((kind) => kind.startsWith("result")) ?? "";
    expect(finished.error !== undefined).toBe(last.includes(" error "));
  });

  test("results come as their calls end, under the ids of their lines, with what allowed the call", async () => {
    const read = (file_path: string) => ({ name: "Read", input: { file_path } });
    const stage = await createSdkStage([{ calls: [read("a.txt"), read("missing.txt")] }, "Done."]);
    stage.write("a.txt", "hello\n");
    const finished = await stage.run("go", free);
    const results = finished.messages.filter(({ type }) => type === "user");
    expect(results).toHaveLength(2);
    const lines = [...stage.transcripts().values()].flat().map(({ uuid }) => uuid);
    for (const { uuid } of results) expect(lines).toContain(uuid);
    const meta = results.flatMap((message) => message["tool_result_meta"] as object[]);
    expect(meta).toMatchObject([
      { permission_decision: { decision: "accept", source: "config" } },
      { permission_decision: { decision: "accept", source: "config" } },
    ]);
  });

  test("the result of a turn waits for children of the same request, and counts them", async () => {
    const stage = await createSdkStage([
      callHelper({ run_in_background: true }),
      { match: "You help.", text: "Looked.", delayMs: 200 },
      "Waiting.",
      "All done.",
    ]);
    stage.write(".claude/agents/helper.md", helper[".claude/agents/helper.md"]);
    const { out, code } = await print(stage, ["-p", "go", ...written]);
    expect(code).toBe(0);
    const messages = readJsonLines(out);
    const kinds = messages.map(kindOf);
    expect(kinds.slice(-3)).toEqual(["assistant text", "result success ok 2 completed", done]);
    expect(messages.at(-1)).toMatchObject({
      result: "All done.",
      subagent_stats: { spawned: 1, completed: 1, requested: { background: 1 }, by_type: { helper: 1 } },
    });
    const json = await createSdkStage(["Yes."]);
    const { out: one } = await print(json, ["-p", "go", "--output-format", "json"]);
    expect(JSON.parse(one)).toMatchObject({ type: "result", result: "Yes.", result_index: 0 });
  });
});

describe("empty arguments [CLI-1]", () => {
  test.each([
    ["a flag", ["--verbose", ""]],
    ["an option that counts as not given", ["--model", "", "--settings=", "--max-turns", ""]],
  ])("%s", async (_, words) => {
    const stage = await createSdkStage(["Hello."]);
    const { code, out } = await print(stage, ["-p", "hi", ...words]);
    expect({ code, out }).toEqual({ code: 0, out: "Hello.\n" });
  });

  test("editors send an empty word behind --replay-user-messages", async () => {
    const stage = await createSdkStage(["Hello."]);
    const line = `${JSON.stringify({ type: "user", message: { role: "user", content: "hi" } })}\n`;
    const words = ["--input-format", "stream-json", "--output-format", "stream-json"];
    const { code, out } = await runInside(stage, [...words, "--replay-user-messages", ""], {
      input: line,
      environment: { ANTHROPIC_BASE_URL: stage.provider.url, ANTHROPIC_API_KEY: "x" },
    });
    expect(code).toBe(0);
    expect(readJsonLines(out).map(kindOf)).toEqual(["init", "user words", "assistant text", done]);
  });

  test.each([
    ["--permission-mode", ""],
    ["--output-format", ""],
    ["--resume", ""],
  ])("what decides more than a default is not left out: %s", async (...words) => {
    const stage = await createSdkStage([]);
    expect((await print(stage, ["-p", "hi", ...words])).code).toBe(1);
  });
});

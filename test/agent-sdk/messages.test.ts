import { randomUUID } from "node:crypto";
import { getSessionMessages, listSessions, type Options, query } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import {
  bash,
  callHelper,
  collect,
  createPrompts,
  createSdkStage,
  type Message,
  ofType,
  read,
  resultOf,
  results,
  type SdkStage,
  user,
} from "./sdk-stage.ts";

const free: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };
const body = (stage: SdkStage, at: number) => JSON.stringify(stage.provider.requests[at]?.body);
const once = { CLAUDE_CODE_MAX_RETRIES: "0" };
const child = (background: boolean) => callHelper({ run_in_background: background });
const helper: Options = { ...free, agents: { helper: { description: "Helps.", prompt: "You help." } } };

describe("messages [DRP-1]", () => {
  test("partial messages are the stream of the provider", async () => {
    const stage = await createSdkStage(["Hello there."]);
    const finished = await stage.run("hi", { includePartialMessages: true });
    const types = ofType(finished, "stream_event").map(
      (message) => (message["event"] as { type: string }).type,
    );
    expect(types[0]).toBe("message_start");
    expect(types).toContain("content_block_delta");
    expect(types.at(-1)).toBe("message_stop");
  });

  test("the usage of a result is complete", async () => {
    const stage = await createSdkStage([{ text: "Hi.", usage: { inputTokens: 10, outputTokens: 5 } }]);
    const result = resultOf(await stage.run("hi"));
    expect(result?.["usage"]).toMatchObject({
      input_tokens: 10,
      output_tokens: 5,
      server_tool_use: { web_search_requests: 0 },
      service_tier: "standard",
    });
    const [sums] = Object.values(result?.["modelUsage"] as object);
    expect(sums).toMatchObject({ inputTokens: 10, outputTokens: 5, webSearchRequests: 0 });
    expect(sums.costUSD).toBeGreaterThan(0);
  });

  test.each([
    ["unauthorized", 401, "authentication_failed"],
    ["invalid-request", 400, "unknown"],
    ["rate-limited", 429, "rate_limit"],
  ] as const)("a provider that says %s is a success with is_error", async (failure, status, category) => {
    const stage = await createSdkStage([{ failure, times: "any" }]);
    const finished = await stage.run("hi", { env: once });
    expect(resultOf(finished)).toMatchObject({
      subtype: "success",
      is_error: true,
      api_error_status: status,
    });
    expect(resultOf(finished)?.["result"]).toContain("API Error");
    expect(ofType(finished, "assistant")[0]).toMatchObject({ error: category });
    expect(finished.error).toBeDefined();
  });

  test("maxTurns ends with error_max_turns", async () => {
    const stage = await createSdkStage([bash("echo 1"), bash("echo 2")]);
    const finished = await stage.run("go", { ...free, maxTurns: 1 });
    expect(resultOf(finished)).toMatchObject({ subtype: "error_max_turns", is_error: true });
  });

  test("maxBudgetUsd ends with error_max_budget_usd", async () => {
    const stage = await createSdkStage([
      { ...bash("echo 1"), usage: { inputTokens: 100_000, outputTokens: 10 } },
      "Never.",
    ]);
    const finished = await stage.run("go", { ...free, maxBudgetUsd: 0.2 });
    expect(resultOf(finished)).toMatchObject({ subtype: "error_max_budget_usd" });
  });

  test("outputFormat gives a checked structured output", async () => {
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    const stage = await createSdkStage([{ calls: [{ name: "StructuredOutput", input: { n: 4 } }] }]);
    const finished = await stage.run("go", { outputFormat: { type: "json_schema", schema } });
    expect(resultOf(finished)).toMatchObject({ subtype: "success", structured_output: { n: 4 } });
  });

  test("a child is informed of by task messages, and its calls carry the parent's call", async () => {
    const stage = await createSdkStage([
      child(false),
      { match: "You help.", ...bash("echo from the child") },
      { match: "You help.", text: "Looked." },
      "Done.",
    ]);
    const finished = await stage.run("go", helper);
    const [started] = ofType(finished, "system", "task_started");
    expect(started).toMatchObject({ description: "look", subagent_type: "helper", task_type: "local_agent" });
    expect(ofType(finished, "system", "task_notification")[0]).toMatchObject({ status: "completed" });
    const inside = finished.messages.filter(
      (message) => message["parent_tool_use_id"] === started?.["tool_use_id"],
    );
    expect(inside.map(({ type }) => type)).toEqual(["user", "assistant", "user"]);
  });

  test("forwardSubagentText also shows what a child says", async () => {
    const stage = await createSdkStage([
      child(false),
      { match: "You help.", text: "Looked around." },
      "Done.",
    ]);
    const finished = await stage.run("go", { ...helper, forwardSubagentText: true });
    const said = ofType(finished, "assistant").filter((message) => message["parent_tool_use_id"] !== null);
    expect(JSON.stringify(said)).toContain("Looked around.");
  });

  test("a turn ends while a child works in the background, and its end starts another", async () => {
    const stage = await createSdkStage([
      child(true),
      { match: "You help.", text: "Looked.", delayMs: 150 },
      "Waiting.",
      "All done.",
    ]);
    const finished = await stage.run("go", helper);
    expect(results(finished).map((result) => result["result"])).toEqual(["Waiting.", "All done."]);
    expect(ofType(finished, "system", "background_tasks_changed").length).toBeGreaterThanOrEqual(2);
    expect(ofType(finished, "system", "task_notification")).toHaveLength(1);
    expect(finished.error).toBeUndefined();
  });

  test("stopTask stops a child in the background", async () => {
    const stage = await createSdkStage([
      child(true),
      { match: "You help.", failure: "stall" },
      { text: "Waiting.", times: "any" },
    ]);
    const prompts = createPrompts(user("go"));
    const running = query({ prompt: prompts, options: stage.options(helper) });
    let task = "";
    let isStopped = false;
    const finished = await collect(running, undefined, async (message: Message) => {
      if (message["subtype"] === "task_started") task = String(message["task_id"]);
      if (message.type !== "result" || isStopped) return;
      isStopped = true;
      await running.stopTask(task);
      prompts.end();
    });
    expect(ofType(finished, "system", "task_notification")[0]).toMatchObject({
      task_id: task,
      status: "stopped",
    });
    expect(ofType(finished, "system", "task_updated").at(-1)).toMatchObject({ patch: { status: "killed" } });
  });
});

describe("sessions [DRP-1]", () => {
  test("resume continues with a session under its id", async () => {
    const stage = await createSdkStage(["One.", "Two."]);
    const first = await stage.run("first");
    const id = String(resultOf(first)?.["session_id"]);
    const second = await stage.run("second", { resume: id });
    expect(resultOf(second)).toMatchObject({ session_id: id, result: "Two." });
    expect(stage.asked(1)).toContain("first");
  });

  test("continue takes the newest session, and forkSession a copy", async () => {
    const stage = await createSdkStage(["One.", "Two.", "Three."]);
    const id = String(resultOf(await stage.run("first"))?.["session_id"]);
    expect(resultOf(await stage.run("second", { continue: true }))?.["session_id"]).toBe(id);
    expect(resultOf(await stage.run("third", { resume: id, forkSession: true }))?.["session_id"]).not.toBe(
      id,
    );
  });

  test("sessionId is the id, and the SDK's readers find the session with its title", async () => {
    const stage = await createSdkStage(["One."]);
    const sessionId = randomUUID();
    const finished = await stage.run("first", { sessionId, title: "My title" });
    expect(resultOf(finished)?.["session_id"]).toBe(sessionId);
    const before = process.env["HOME"];
    process.env["CLAUDE_CONFIG_DIR"] = `${stage.home}/.claude`;
    try {
      const sessions = await listSessions({ dir: stage.cwd });
      expect(sessions).toMatchObject([{ sessionId, customTitle: "My title" }]);
      const streamed = ofType(finished, "assistant").map(({ uuid }) => uuid);
      const kept = await getSessionMessages(sessionId, { dir: stage.cwd });
      expect(kept.filter(({ type }) => type === "assistant").map(({ uuid }) => uuid)).toEqual(streamed);
    } finally {
      delete process.env["CLAUDE_CONFIG_DIR"];
      process.env["HOME"] = before;
    }
  });

  test("persistSession false writes no transcript", async () => {
    const stage = await createSdkStage(["One."]);
    await stage.run("first", { persistSession: false });
    expect(() => stage.transcripts()).toThrow();
  });

  test("a prompt keeps the host's uuid in the replay and in the transcript", async () => {
    const stage = await createSdkStage(["One."]);
    const uuid = randomUUID();
    const prompts = createPrompts(user("first", { uuid }));
    prompts.end();
    const options = stage.options({ extraArgs: { "replay-user-messages": null } });
    const finished = await collect(query({ prompt: prompts, options }));
    expect(ofType(finished, "user")[0]).toMatchObject({ uuid, isReplay: true });
    const lines = [...stage.transcripts().values()].flat();
    expect(lines.find((line) => line["uuid"] === uuid)).toMatchObject({ type: "user" });
  });

  test("a session that is not there is an error", async () => {
    const stage = await createSdkStage([]);
    const { error } = await stage.run("first", { resume: randomUUID() });
    expect(error).toBeDefined();
  });
});

describe("options [DRP-1]", () => {
  test("no system prompt, one of its own, and the preset with an addition", async () => {
    const stage = await createSdkStage(["1.", "2.", "3."]);
    await stage.run("hi");
    await stage.run("hi", { systemPrompt: "Speak like a pirate." });
    await stage.run("hi", { systemPrompt: { type: "preset", preset: "claude_code", append: "Be brief." } });
    const system = [0, 1, 2].map((at) => stage.provider.requests[at]?.request.system.join("\n") ?? "");
    expect(system[1]).toContain("Speak like a pirate.");
    expect(system[2]).toContain("Be brief.");
    expect(system[2]?.length).toBeGreaterThan((system[0]?.length ?? 0) + 200);
  });

  test("tools chooses the built-in tools", async () => {
    const stage = await createSdkStage(["1.", "2."]);
    await stage.run("hi", { tools: ["Read", "Grep"] });
    await stage.run("hi", { tools: [] });
    const names = (at: number) => stage.provider.requests[at]?.request.tools.map(({ name }) => name);
    expect(names(0)?.toSorted()).toEqual(["Grep", "Read"]);
    expect(names(1)).toEqual([]);
  });

  test("toolAliases lets the model call a tool by another name", async () => {
    const stage = await createSdkStage([
      { calls: [{ name: "read_it", input: { file_path: "a.txt" } }] },
      "Done.",
    ]);
    stage.write("a.txt", "aliased text");
    await stage.run("go", { toolAliases: { read_it: "Read" } });
    expect(body(stage, 1)).toContain("aliased text");
  });

  test("skills leaves out those that are not named", async () => {
    const stage = await createSdkStage(["Done."]);
    for (const name of ["one", "two"])
      stage.write(
        `.claude/skills/${name}/SKILL.md`,
        `---\nname: ${name}\ndescription: The skill ${name} of many.\n---\nText.`,
      );
    await stage.run("go", { skills: ["one"], settingSources: ["project"] });
    expect(body(stage, 0)).toContain("The skill one of many.");
    expect(body(stage, 0)).not.toContain("The skill two of many.");
  });

  test("additionalDirectories may be read", async () => {
    const stage = await createSdkStage([read("../other/a.txt"), "Done."]);
    stage.write("../other/a.txt", "from the other folder");
    await stage.run("go", { additionalDirectories: [`${stage.cwd}/../other`] });
    expect(body(stage, 1)).toContain("from the other folder");
  });

  test("settings as an object hold for the session", async () => {
    const stage = await createSdkStage([bash("echo secret-word"), "Done."]);
    await stage.run("go", { ...free, settings: { permissions: { deny: ["Bash"] } } });
    expect(body(stage, 1)).not.toContain("secret-word\\n");
  });

  test("agent makes a definition the main thread", async () => {
    const stage = await createSdkStage(["Reviewed."]);
    await stage.run("go", {
      agent: "helper",
      agents: { helper: { description: "Helps.", prompt: "You help much." } },
    });
    expect(stage.asked(0)).toContain("You help much.");
  });

  test("an MCP server as a process is connected from the options", async () => {
    const stage = await createSdkStage(["Done."]);
    const finished = await stage.run("go", {
      mcpServers: { gone: { type: "stdio", command: "/nonexistent-server" } },
    });
    expect(ofType(finished, "system", "init")[0]?.["mcp_servers"]).toMatchObject([
      { name: "gone", status: "failed" },
    ]);
  });

  test("without a key the result is an error, and nothing is made up", async () => {
    const stage = await createSdkStage([]);
    const finished = await stage.run("hi", { env: { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" } });
    expect(resultOf(finished)).toMatchObject({ is_error: true });
    expect(JSON.stringify(finished.messages)).not.toContain("[offline model");
  });
});

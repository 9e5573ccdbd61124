import { randomUUID } from "node:crypto";
import { readFileSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { createSdkMcpServer, listSessions, tool } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import {
  bash,
  callHelper,
  converse,
  createPrompts,
  createSdkStage,
  free,
  ofType,
  resultOf,
  user,
  write,
} from "./sdk-stage.ts";

const edit = (file_path: string, old_string: string, new_string: string) => ({
  calls: [{ name: "Edit", input: { file_path, old_string, new_string } }],
});

describe("resuming at a message [DRP-1]", () => {
  async function twoTurns(...rest: string[]) {
    const stage = await createSdkStage(["First.", "Second.", ...rest]);
    const first = await stage.run("one");
    const id = resultOf(first)?.session_id ?? "";
    const at = ofType(first, "assistant").at(-1)?.uuid ?? "";
    const prompt = randomUUID();
    const second = createPrompts(user("two", { uuid: prompt }));
    second.end();
    await stage.run(second, { resume: id });
    return { stage, id, at, prompt };
  }

  test("resumeSessionAt leaves out what followed, in the session itself", async () => {
    const { stage, id, at } = await twoTurns("Third.", "Fourth.");
    const finished = await stage.run("three", { resume: id, resumeSessionAt: at });
    expect(resultOf(finished)).toMatchObject({ result: "Third.", session_id: id });
    expect(stage.asked(2)).toContain("one");
    expect(stage.asked(2)).not.toContain("two");
    await stage.run("four", { resume: id });
    expect([stage.asked(3).includes("three"), stage.asked(3).includes("two")]).toEqual([true, false]);
  });

  test("resumeSessionAt with forkSession leaves the session as it is", async () => {
    const { stage, id, at } = await twoTurns("Third.", "Fourth.");
    const finished = await stage.run("three", { resume: id, resumeSessionAt: at, forkSession: true });
    expect(resultOf(finished)?.session_id).not.toBe(id);
    expect([stage.asked(2).includes("one"), stage.asked(2).includes("two")]).toEqual([true, false]);
    await stage.run("four", { resume: id });
    expect([stage.asked(3).includes("two"), stage.asked(3).includes("three")]).toEqual([true, false]);
  });

  test("a message that is not there is an error with its id", async () => {
    const { stage, id } = await twoTurns();
    const finished = await stage.run("three", {
      resume: id,
      resumeSessionAt: "0b0c4e6e-0000-4000-8000-000000000000",
    });
    expect(finished.error?.message).toContain("0b0c4e6e-0000");
    expect(resultOf(finished)).toMatchObject({ subtype: "error_during_execution", is_error: true });
  });

  test("resumeDropsTurn lets the named turn go, and refuses to lose another", async () => {
    const { stage, id, at, prompt } = await twoTurns("Third.");
    const wrong = await stage.run("three", { resume: id, resumeSessionAt: at, resumeDropsTurn: id });
    expect(String(resultOf(wrong)?.["errors"])).toMatch(/^Resume rejected by --resume-drops-turn:/);
    const right = await stage.run("three", { resume: id, resumeSessionAt: at, resumeDropsTurn: prompt });
    expect(resultOf(right)).toMatchObject({ result: "Third." });
  });
});

describe("elicitation [DRP-1]", () => {
  function colourServer() {
    const server = createSdkMcpServer({
      name: "shop",
      tools: [
        tool("paint", "Paints.", {}, async () => {
          const answer = await server.instance.server.elicitInput({
            message: "Which colour?",
            requestedSchema: { type: "object", properties: { colour: { type: "string" } } },
          });
          return { content: [{ type: "text", text: JSON.stringify(answer) }] };
        }),
      ],
    });
    return server;
  }
  const call = { calls: [{ name: "mcp__shop__paint", input: {} }] };

  test("the host answers the question of a server", async () => {
    const stage = await createSdkStage([call, "Done."]);
    const asked: unknown[] = [];
    await converse(
      stage,
      {
        ...free,
        mcpServers: { shop: colourServer() },
        onElicitation: async (request) => {
          asked.push(request);
          return { action: "accept", content: { colour: "blue" } };
        },
      },
      (message, _, prompts) => (message.type === "result" ? prompts.end() : undefined),
    );
    expect(asked).toMatchObject([{ serverName: "shop", message: "Which colour?", mode: "form" }]);
    expect(JSON.stringify(stage.provider.requests[1]?.request.messages)).toContain("blue");
  });

  test("a host without an answer declines it", async () => {
    const stage = await createSdkStage([call, "Done."]);
    await converse(stage, { ...free, mcpServers: { shop: colourServer() } }, (message, _, prompts) =>
      message.type === "result" ? prompts.end() : undefined,
    );
    expect(JSON.stringify(stage.provider.requests[1]?.request.messages)).toContain("decline");
  });
});

describe("files [DRP-1]", () => {
  test("seedReadState lets a file be edited that the host has shown, unless it has changed", async () => {
    const stage = await createSdkStage(["Hi.", edit("a.txt", "a", "b"), edit("c.txt", "c", "d"), "Done."]);
    stage.write("a.txt", "a\n");
    stage.write("c.txt", "c\n");
    await converse(stage, free, async (message, running, prompts) => {
      if (message.type !== "result") return;
      if (message["result"] !== "Hi.") return prompts.end();
      await running.seedReadState(
        join(stage.cwd, "a.txt"),
        Math.floor(statSync(join(stage.cwd, "a.txt")).mtimeMs),
      );
      const seen = Math.floor(statSync(join(stage.cwd, "c.txt")).mtimeMs);
      utimesSync(join(stage.cwd, "c.txt"), new Date(seen + 5000), new Date(seen + 5000));
      await running.seedReadState(join(stage.cwd, "c.txt"), seen);
      prompts.send(user("edit"));
    });
    const results =
      stage.provider.requests.at(-1)?.request.messages.filter(({ role }) => role === "user") ?? [];
    const [first, second] = results.slice(-2).map((message) => JSON.stringify(message));
    expect(first).not.toContain('"is_error":true');
    expect(second).toContain('"is_error":true');
  });

  test("a file mentioned with @ is attached, by the rules for reading", async () => {
    const stage = await createSdkStage(["Done.", "Done."]);
    stage.write("notes.md", "Otters sleep.\nThey hold hands.\n");
    stage.write("secret.txt", "Hidden word.\n");
    await stage.run("look at @notes.md#L2 and @secret.txt", { disallowedTools: ["Read(./secret.txt)"] });
    const sent = JSON.stringify(stage.provider.requests[0]?.request.messages);
    expect([
      sent.includes("They hold hands."),
      sent.includes("Otters sleep."),
      sent.includes("Hidden word."),
    ]).toEqual([true, false, false]);
  });

  test("a prompt that a program composed calls no command and attaches no file", async () => {
    const stage = await createSdkStage(["Done."]);
    stage.write("notes.md", "Otters sleep.\n");
    const finished = await converse(
      stage,
      {},
      (message, _, prompts) => (message.type === "result" ? prompts.end() : undefined),
      user("/clear @notes.md", { client_composed: true } as object),
    );
    expect(resultOf(finished)).toMatchObject({ result: "Done." });
    expect(stage.asked(0)).toContain("/clear @notes.md");
    expect(stage.asked(0)).not.toContain("Otters");
  });
});

describe("settings and titles [DRP-1]", () => {
  test("updateSettings writes to the local settings, and null removes a key", async () => {
    const stage = await createSdkStage(["Hi."]);
    stage.write(".claude/settings.local.json", '{\n  "model": "opus",\n  "cleanupPeriodDays":  9\n}\n');
    const refusals: string[] = [];
    const finished = await converse(stage, {}, async (message, running, prompts) => {
      if (message.type !== "result") return;
      await running.updateSettings("localSettings", { model: null, outputStyle: "x" });
      await running
        .updateSettings("projectSettings" as "localSettings", {})
        .catch(({ message: text }: Error) => refusals.push(text));
      prompts.end();
    });
    expect(finished.error).toBeUndefined();
    const text = readFileSync(join(stage.cwd, ".claude/settings.local.json"), "utf8");
    expect(JSON.parse(text)).toEqual({ cleanupPeriodDays: 9, outputStyle: "x" });
    expect(refusals).toEqual([expect.stringContaining("localSettings or userSettings")]);
  });

  test("reinitialize describes the session again", async () => {
    const stage = await createSdkStage(["Hi."]);
    let again: unknown;
    await converse(stage, { title: "Otters" }, async (message, running, prompts) => {
      if (message.type !== "result") return;
      again = await running.reinitialize();
      prompts.end();
    });
    expect(again).toMatchObject({ output_style: "default" });
    const sessions = await listSessionsOf(stage);
    expect(sessions).toMatchObject([{ customTitle: "Otters" }]);
  });

  async function listSessionsOf({ cwd, home }: { cwd: string; home: string }) {
    const before = process.env["CLAUDE_CONFIG_DIR"];
    process.env["CLAUDE_CONFIG_DIR"] = join(home, ".claude");
    try {
      return await listSessions({ dir: cwd });
    } finally {
      if (before === undefined) delete process.env["CLAUDE_CONFIG_DIR"];
      else process.env["CLAUDE_CONFIG_DIR"] = before;
    }
  }
});

describe("what an organisation restricts [DRP-2]", () => {
  test("managedSettings deny a tool, ask about another, and hold against bypassing", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), "Done."]);
    const asked: string[] = [];
    await stage.run("write", {
      allowedTools: ["Write"],
      managedSettings: { permissions: { deny: ["Bash"], ask: ["Write"] } },
      canUseTool: async (name, input) => {
        asked.push(name);
        return { behavior: "allow", updatedInput: input };
      },
    });
    const offered = stage.provider.requests[0]?.request.tools.map(({ name }) => name) ?? [];
    expect([asked, offered.includes("Bash"), offered.includes("Write")]).toEqual([["Write"], false, true]);
  });

  test.each([
    [{ permissions: { disableBypassPermissionsMode: "disable" as const } }, "bypassPermissions"],
    [{ permissions: { allow: ["Bash"] } }, "permissions.allow"],
    [{ hooks: {} }, "hooks"],
    [{ permissions: { deny: ["Bash("] } }, "Bash("],
  ])("managedSettings %j that cannot be honoured end the start", async (managedSettings, named) => {
    const stage = await createSdkStage([]);
    const { error, stderr } = await stage.run("hi", { ...free, managedSettings });
    expect(`${error?.message} ${stderr}`).toContain(named);
    expect(stage.provider.requests).toEqual([]);
  });
});

test("get_usage counts lines, and getContextUsage names agents and tools of servers [DRP-1]", async () => {
  const stage = await createSdkStage([write("a.txt", "a\nb\n"), "Done."]);
  let usage: unknown;
  let context:
    | { agents: readonly { agentType: string }[]; mcpTools: readonly { serverName: string }[] }
    | undefined;
  const server = createSdkMcpServer({
    name: "shop",
    tools: [tool("buy", "Buys.", {}, async () => ({ content: [{ type: "text", text: "ok" }] }))],
  });
  await converse(stage, { ...free, mcpServers: { shop: server } }, async (message, running, prompts) => {
    if (message.type !== "result") return;
    usage = await running.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET();
    context = await running.getContextUsage();
    prompts.end();
  });
  expect(usage).toMatchObject({ session: { total_lines_added: 2, total_lines_removed: 0 } });
  expect(context?.agents.map(({ agentType }) => agentType)).toContain("general-purpose");
  expect(context?.mcpTools.map(({ serverName }) => serverName)).toEqual(["shop"]);
});

describe("callbacks beside the run [DRP-1]", () => {
  test("an Elicitation callback answers in place of the host, and ElicitationResult sees the answer", async () => {
    const server = createSdkMcpServer({
      name: "shop",
      tools: [
        tool("paint", "Paints.", {}, async () => {
          const answer = await server.instance.server.elicitInput({
            message: "Which?",
            requestedSchema: { type: "object", properties: { colour: { type: "string" } } },
          });
          return { content: [{ type: "text", text: JSON.stringify(answer) }] };
        }),
      ],
    });
    const stage = await createSdkStage([{ calls: [{ name: "mcp__shop__paint", input: {} }] }, "Done."]);
    const received: unknown[] = [];
    const asked: unknown[] = [];
    await converse(
      stage,
      {
        ...free,
        mcpServers: { shop: server },
        onElicitation: async (request) => {
          asked.push(request);
          return { action: "decline" };
        },
        hooks: {
          Elicitation: [
            {
              matcher: "shop",
              hooks: [
                async () => ({
                  hookSpecificOutput: {
                    hookEventName: "Elicitation",
                    action: "accept",
                    content: { colour: "red" },
                  },
                }),
              ],
            },
          ],
          ElicitationResult: [
            {
              hooks: [
                async (input) => {
                  received.push(input);
                  return {};
                },
              ],
            },
          ],
        },
      },
      (message, _, prompts) => (message.type === "result" ? prompts.end() : undefined),
    );
    expect(asked).toEqual([]);
    expect(received).toMatchObject([
      { mcp_server_name: "shop", action: "accept", content: { colour: "red" } },
    ]);
    expect(JSON.stringify(stage.provider.requests[1]?.request.messages)).toContain("red");
  });

  test("PreModelSwitch refuses a model, PostModelSwitch receives one", async () => {
    const stage = await createSdkStage(["One.", "Two."]);
    const received: unknown[] = [];
    let refusal = "";
    await converse(
      stage,
      {
        model: "sonnet",
        hooks: {
          PreModelSwitch: [
            {
              matcher: "opus",
              hooks: [
                async () => ({
                  hookSpecificOutput: {
                    hookEventName: "PreModelSwitch",
                    permissionDecision: "deny",
                    permissionDecisionReason: "too dear",
                  },
                }),
              ],
            },
          ],
          PostModelSwitch: [{ hooks: [async (input) => ({ systemMessage: String(received.push(input)) })] }],
        },
      },
      async (message, running, prompts) => {
        if (message.type !== "result") return;
        if (message["result"] !== "One.") return prompts.end();
        await running.setModel("opus").catch((error: Error) => {
          refusal = error.message;
        });
        await running.setModel("haiku");
        prompts.send(user("again"));
      },
    );
    expect(refusal).toContain("too dear");
    expect(received).toMatchObject([{ to_model: "haiku" }]);
    expect(JSON.stringify(stage.provider.requests[1]?.body)).toContain("haiku");
  });

  test("PostToolBatch that blocks ends the run before the next model call", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), "Never."]);
    const finished = await stage.run("write", {
      ...free,
      hooks: { PostToolBatch: [{ hooks: [async () => ({ decision: "block", reason: "enough" })] }] },
    });
    expect(stage.provider.requests).toHaveLength(1);
    expect(resultOf(finished)).toMatchObject({ terminal_reason: "hook_stopped" });
  });
});

test("an in-process server without a tool is connected [DRP-1]", async () => {
  const stage = await createSdkStage(["Hello."]);
  const server = createSdkMcpServer({ name: "empty", version: "1.0.0", tools: [] });
  const finished = await stage.run("hi", { mcpServers: { empty: server } });
  const init = finished.messages.find(({ subtype }) => subtype === "init");
  expect(init).toMatchObject({ mcp_servers: [{ name: "empty", status: "connected" }] });
});

test("a failed call of a child says why beside its result [DRP-1]", async () => {
  const stage = await createSdkStage([
    callHelper(),
    { match: "You help.", ...bash("echo out; exit 3") },
    { match: "You help.", text: "Looked." },
    "Done.",
  ]);
  const finished = await stage.run("hi", {
    ...free,
    agents: { helper: { description: "Helps.", prompt: "You help." } },
  });
  const failed = finished.messages.find(
    (message) => message["parent_tool_use_id"] != null && "tool_use_result" in message,
  );
  expect(failed).toMatchObject({ type: "user", tool_use_result: expect.stringMatching(/^Error: .*3/s) });
});

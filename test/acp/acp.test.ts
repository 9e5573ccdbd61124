import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { openInside } from "../agent-sdk/run-inside.ts";
import { read, write } from "../agent-sdk/sdk-stage.ts";
import { projectRoot } from "../project-files.ts";
import { createPlace, runCommand } from "../scenarios/run-command.ts";

type Choose = (request: acp.RequestPermissionRequest) => string | undefined;

/** An editor that answers questions and keeps what it is notified of. */
async function createEditor(
  steps: readonly Step[],
  choose: Choose = () => "reject",
  {
    key = true,
    capabilities = {},
    fill = () => ({ action: "decline" }),
  }: {
    readonly key?: boolean;
    readonly capabilities?: acp.ClientCapabilities;
    readonly fill?: (request: acp.CreateElicitationRequest) => acp.CreateElicitationResponse;
  } = {},
) {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment: Record<string, string> = key
    ? { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" }
    : {};
  const running = openInside(place, ["acp"], environment);
  const updates: acp.SessionUpdate[] = [];
  const asked: acp.RequestPermissionRequest[] = [];
  const forms: acp.CreateElicitationRequest[] = [];
  const { methods } = acp;
  const connection = acp
    .client({ name: "test-editor" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      const optionId = choose(params);
      return {
        outcome: optionId === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId },
      };
    })
    .onRequest(methods.client.elicitation.create, ({ params }) => {
      forms.push(params);
      return fill(params);
    })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .connect(
      acp.ndJsonStream(
        Writable.toWeb(running.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(running.stdout) as ReadableStream<Uint8Array>,
      ),
    );
  onTestFinished(async () => {
    running.stdin.end();
    await running.code;
  });
  const { agent } = connection;
  await agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: capabilities,
  });
  const open = (more: Partial<acp.NewSessionRequest> = {}) =>
    agent.request(methods.agent.session.new, { cwd: place.cwd, mcpServers: [], ...more });
  const prompt = (sessionId: string, text: string) =>
    agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const texts = (kind: string) =>
    updates.flatMap((update) =>
      update.sessionUpdate === kind && "content" in update && isText(update.content)
        ? [update.content.text]
        : [],
    );
  return { ...place, provider, agent, open, prompt, updates, asked, forms, texts, running };
}

function isText(content: unknown): content is { readonly type: "text"; readonly text: string } {
  return typeof content === "object" && content !== null && "text" in content;
}

const ofKind = <Kind extends acp.SessionUpdate["sessionUpdate"]>(
  updates: readonly acp.SessionUpdate[],
  kind: Kind,
) =>
  updates.filter(
    (update): update is Extract<acp.SessionUpdate, { sessionUpdate: Kind }> => update.sessionUpdate === kind,
  );

describe("an editor over the Agent Client Protocol [DRP-4]", () => {
  test("a prompt is answered in pieces, and a file is read with its place", async () => {
    const editor = await createEditor([{ text: "I look.", ...read("a.txt") }, "It says otters."]);
    editor.write("a.txt", "otters\n");
    const { sessionId, modes } = await editor.open();
    expect(modes?.availableModes.map(({ id }) => id)).toEqual(["default", "acceptEdits", "plan", "dontAsk"]);
    expect(await editor.prompt(sessionId, "what does a.txt say?")).toEqual({ stopReason: "end_turn" });
    expect(editor.texts("agent_message_chunk").join("")).toBe("I look.It says otters.");
    const [call] = ofKind(editor.updates, "tool_call");
    expect(call).toMatchObject({
      kind: "read",
      status: "pending",
      title: "Read a.txt",
      locations: [{ path: "a.txt" }],
    });
    const statuses = ofKind(editor.updates, "tool_call_update").map(({ status }) => status);
    expect(statuses).toEqual(["in_progress", "completed"]);
    expect(editor.asked).toEqual([]);
  });

  test("an edit is asked for with its diff, and happens when it is allowed", async () => {
    const editor = await createEditor([write("new.txt", "hi\n"), "Done."], () => "allow");
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "write it");
    const [request] = editor.asked;
    expect(request?.toolCall.content).toEqual([
      { type: "diff", path: "new.txt", oldText: null, newText: "hi\n" },
    ]);
    expect(request?.options.map(({ kind }) => kind)).toEqual(["allow_always", "allow_once", "reject_once"]);
    expect(readFileSync(join(editor.cwd, "new.txt"), "utf8")).toBe("hi\n");
  });

  test("a rejected edit does not happen, and a cancelled question ends the turn", async () => {
    const editor = await createEditor(
      [write("a.txt", "a"), "Sorry.", write("b.txt", "b"), "Never."],
      ({ toolCall }) => (toolCall.title?.includes("a.txt") === true ? "reject" : undefined),
    );
    const { sessionId } = await editor.open();
    expect(await editor.prompt(sessionId, "write a")).toEqual({ stopReason: "end_turn" });
    expect(await editor.prompt(sessionId, "write b")).toEqual({ stopReason: "cancelled" });
    expect([existsSync(join(editor.cwd, "a.txt")), existsSync(join(editor.cwd, "b.txt"))]).toEqual([
      false,
      false,
    ]);
    expect(editor.texts("agent_message_chunk").join("")).not.toContain("Never.");
  });

  test("agents that start together are asked about once, with what they would take and may do [BIL-1, BIL-2]", async () => {
    const start = { subagent_type: "general-purpose", description: "look", prompt: "LOOK" };
    const editor = await createEditor([
      { calls: [start, start].map((input) => ({ name: "Agent", input })) },
      "None.",
    ]);
    editor.write(".claude/settings.json", JSON.stringify({ quotes: { askAboveAgents: 1 } }));
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "go");
    expect(editor.asked).toHaveLength(1);
    const [{ toolCall, options }] = editor.asked as [acp.RequestPermissionRequest];
    expect(toolCall.title).toMatch(/^Start 2 agents, together likely \$/);
    const text = JSON.stringify(toolCall.content);
    expect(text).toContain("may write: general-purpose");
    expect(text).toContain("quotes.askAboveAgents");
    expect(options.map(({ kind }) => kind)).toEqual(["allow_once", "reject_once"]);
    expect(editor.texts("agent_message_chunk").join("")).toBe("None.");
    expect(editor.provider.requests).toHaveLength(2);
  });

  test("what is allowed for the session is not asked again", async () => {
    const editor = await createEditor([write("a.txt", "a"), write("a.txt", "b"), "Done."], () => "always");
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "write twice");
    expect([editor.asked.length, existsSync(join(editor.cwd, ".claude"))]).toEqual([1, false]);
  });

  test("a mode chosen by the editor holds from the next call on, and bypassing is refused", async () => {
    const editor = await createEditor([write("a.txt", "a"), "Done."]);
    const { sessionId } = await editor.open();
    const { setMode } = acp.methods.agent.session;
    await expect(editor.agent.request(setMode, { sessionId, modeId: "bypassPermissions" })).rejects.toThrow(
      "was not allowed at the start",
    );
    await editor.agent.request(setMode, { sessionId, modeId: "acceptEdits" });
    await editor.prompt(sessionId, "write");
    expect([editor.asked.length, existsSync(join(editor.cwd, "a.txt"))]).toEqual([0, true]);
    expect(ofKind(editor.updates, "current_mode_update")).toMatchObject([{ currentModeId: "acceptEdits" }]);
  });

  test("the plan of the agent is shown", async () => {
    const todos = [
      { content: "Look", status: "completed", activeForm: "Looking" },
      { content: "Write", status: "in_progress", activeForm: "Writing" },
    ];
    const editor = await createEditor([{ calls: [{ name: "TodoWrite", input: { todos } }] }, "Done."]);
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "plan");
    expect(ofKind(editor.updates, "plan")).toMatchObject([
      {
        entries: [
          { content: "Look", status: "completed" },
          { content: "Write", status: "in_progress" },
        ],
      },
    ]);
  });

  test("servers of the editor, images in prompts and what a child does come through", async () => {
    const editor = await createEditor(
      [
        { calls: [{ name: "mcp__st__hi", input: {} }] },
        "Said hi.",
        "A dot.",
        {
          calls: [
            {
              id: "delegated",
              name: "Agent",
              input: {
                description: "reads",
                prompt: "[kid] read it",
                subagent_type: "general-purpose",
                run_in_background: false,
              },
            },
          ],
        },
        { match: "[kid]", ...read("a.txt") },
        "The kid is done.",
        "All done.",
      ],
      () => "allow",
    );
    editor.write("a.txt", "otters\n");
    const args = [join(projectRoot, "test/fixtures/mcp/offering-server.mjs")];
    const { sessionId } = await editor.open({
      mcpServers: [{ name: "st", command: process.execPath, args, env: [] }],
    });
    await editor.prompt(sessionId, "say hi");
    expect(editor.asked.map(({ toolCall }) => toolCall.title)).toEqual(["mcp__st__hi"]);
    expect(JSON.stringify(ofKind(editor.updates, "tool_call_update"))).toContain("hi there");
    const { prompt } = acp.methods.agent.session;
    const data =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const image = { type: "image", mimeType: "image/png", data } as const;
    await editor.agent.request(prompt, {
      sessionId,
      prompt: [{ type: "text", text: "what is this?" }, image],
    });
    expect(JSON.stringify(editor.provider.requests[2]?.request.messages)).toContain(data);
    const audio = { type: "audio", mimeType: "audio/wav", data: "" } as const;
    await expect(editor.agent.request(prompt, { sessionId, prompt: [audio] })).rejects.toThrow("audio");
    await editor.prompt(sessionId, "delegate it");
    const about = ofKind(editor.updates, "tool_call_update").filter(
      ({ toolCallId }) => toolCallId === "delegated",
    );
    expect(JSON.stringify(about)).toContain("general-purpose: ");
  });

  test("by setting, a child in the background asks the editor, whichever turn it is [BGR-6]", async () => {
    const child = { description: "writes", prompt: "[kid] write it", subagent_type: "general-purpose" };
    const editor = await createEditor(
      [
        { calls: [{ name: "Agent", input: { ...child, run_in_background: true } }] },
        { match: "[kid]", ...write("made.txt", "otters") },
        { times: "any", text: "Done." },
      ],
      () => "allow",
    );
    const settings = { backgroundAgents: { questions: "ask" } };
    mkdirSync(join(editor.home, ".claude"), { recursive: true });
    writeFileSync(join(editor.home, ".claude/settings.json"), JSON.stringify(settings));
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "delegate it");
    await expect.poll(() => existsSync(join(editor.cwd, "made.txt"))).toBe(true);
    expect(editor.asked.map(({ toolCall }) => toolCall.title)).toEqual([expect.stringContaining("made.txt")]);
  });

  test("cancel stops the turn, and the session takes the next prompt", async () => {
    const editor = await createEditor([{ text: "Slow", failure: "stall", after: 1 }, "Quick."]);
    const { sessionId } = await editor.open();
    const first = editor.prompt(sessionId, "be slow");
    await expect.poll(() => editor.texts("agent_message_chunk").length).toBeGreaterThan(0);
    await editor.agent.notify(acp.methods.agent.session.cancel, { sessionId });
    expect(await first).toEqual({ stopReason: "cancelled" });
    expect(await editor.prompt(sessionId, "be quick")).toEqual({ stopReason: "end_turn" });
  });

  test("a session is opened again with its conversation", async () => {
    const editor = await createEditor(["One.", "Two."]);
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "first");
    await editor.agent.request(acp.methods.agent.session.close, { sessionId });
    const { load } = acp.methods.agent.session;
    await editor.agent.request(load, { sessionId, cwd: editor.cwd, mcpServers: [] });
    expect(editor.texts("user_message_chunk")).toContain("first");
    await editor.prompt(sessionId, "second");
    expect(JSON.stringify(editor.provider.requests[1]?.request.messages)).toContain("One.");
  });

  test("stored sessions are listed, resumed without their conversation, and deleted", async () => {
    const editor = await createEditor(["One.", "Two."]);
    const { list, resume, close, delete: remove } = acp.methods.agent.session;
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "the first prompt");
    const found = { sessionId, cwd: editor.cwd, title: "the first prompt", updatedAt: expect.any(String) };
    expect(await editor.agent.request(list, { cwd: editor.cwd })).toEqual({ sessions: [found] });
    expect(await editor.agent.request(list, {})).toEqual({ sessions: [found] });
    expect(await editor.agent.request(list, { cwd: editor.home })).toEqual({ sessions: [] });
    await editor.agent.request(close, { sessionId });
    editor.updates.length = 0;
    const resumed = await editor.agent.request(resume, { sessionId, cwd: editor.cwd });
    expect(resumed.modes?.currentModeId).toBe("default");
    await editor.prompt(sessionId, "second");
    expect(editor.texts("user_message_chunk")).toEqual([]);
    expect(JSON.stringify(editor.provider.requests[1]?.request.messages)).toContain("One.");
    await editor.agent.request(remove, { sessionId });
    expect(await editor.agent.request(list, { cwd: editor.cwd })).toEqual({ sessions: [] });
    await editor.agent.request(remove, { sessionId });
  });

  test("model, effort and mode are options that hold from the next request on", async () => {
    const editor = await createEditor(["One.", "Two."]);
    const { setConfigOption, setMode } = acp.methods.agent.session;
    const { sessionId, configOptions } = await editor.open();
    expect(configOptions?.map(({ id, category }) => [id, category])).toEqual([
      ["mode", "mode"],
      ["model", "model"],
      ["effort", "thought_level"],
    ]);
    const set = (configId: string, value: string) =>
      editor.agent.request(setConfigOption, { sessionId, configId, value });
    await set("model", "haiku");
    const { configOptions: changed } = await set("effort", "low");
    expect(changed.map((option) => "currentValue" in option && option.currentValue)).toEqual([
      "default",
      "haiku",
      "low",
    ]);
    await editor.prompt(sessionId, "hi");
    expect(editor.provider.requests[0]?.body["model"]).toMatch(/haiku/);
    await expect(set("effort", "enormous")).rejects.toThrow("low, medium");
    await expect(set("colour", "red")).rejects.toThrow("no option");
    await expect(set("mode", "bypassPermissions")).rejects.toThrow();
    await editor.agent.request(setMode, { sessionId, modeId: "plan" });
    const [last] = ofKind(editor.updates, "config_option_update").slice(-1);
    expect(last?.configOptions[0]).toMatchObject({ id: "mode", currentValue: "plan" });
  });

  test("the editor learns how full the window is, what it cost, and what the session is called", async () => {
    const editor = await createEditor(["One."]);
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "what is\nthis?");
    const [usage] = ofKind(editor.updates, "usage_update");
    expect(usage?.used).toBeGreaterThan(100);
    expect(usage?.size).toBeGreaterThan(usage?.used ?? 0);
    expect(usage?.cost).toMatchObject({ currency: "USD", amount: expect.any(Number) });
    expect(ofKind(editor.updates, "session_info_update")).toMatchObject([{ title: "what is this?" }]);
  });

  test("/compact is among the commands, and its outcome is given in words or shown as a compaction", async () => {
    const prompts = ["One.", "The summary."];
    const plain = await createEditor(prompts);
    const first = await plain.open();
    await plain.prompt(first.sessionId, "hi");
    expect(await plain.prompt(first.sessionId, "/compact keep names")).toEqual({ stopReason: "end_turn" });
    expect(plain.texts("agent_message_chunk").join("\n")).toMatch(/was compacted from \d+ to \d+ tokens/);
    const [commands] = ofKind(plain.updates, "available_commands_update");
    expect(commands?.availableCommands[0]).toMatchObject({
      name: "compact",
      input: { hint: expect.any(String) },
    });

    const shown = await createEditor(prompts, undefined, { capabilities: { session: { compaction: {} } } });
    const second = await shown.open();
    await shown.prompt(second.sessionId, "hi");
    await shown.prompt(second.sessionId, "/compact");
    const states = ofKind(shown.updates, "compaction_update").map(({ status, compactionId }) => [
      status,
      compactionId,
    ]);
    expect(states).toEqual([
      ["in_progress", "compaction-1"],
      ["completed", "compaction-1"],
    ]);
  });

  test("a prompt during a turn waits for its end, and is taken back with it", async () => {
    const gate = Promise.withResolvers<string>();
    const editor = await createEditor([
      () => gate.promise,
      "Two.",
      { text: "Slow", failure: "stall", after: 1 },
    ]);
    const { sessionId } = await editor.open();
    const first = editor.prompt(sessionId, "one");
    const second = editor.prompt(sessionId, "two");
    await expect.poll(() => editor.provider.requests.length).toBe(1);
    gate.resolve("One.");
    expect(await Promise.all([first, second])).toEqual([
      { stopReason: "end_turn" },
      { stopReason: "end_turn" },
    ]);
    expect(editor.texts("agent_message_chunk").join("")).toBe("One.Two.");
    const third = editor.prompt(sessionId, "three");
    await expect.poll(() => editor.texts("agent_message_chunk").join("")).toContain("Slow");
    const fourth = editor.prompt(sessionId, "four");
    await editor.agent.notify(acp.methods.agent.session.cancel, { sessionId });
    expect(await Promise.all([third, fourth])).toEqual([
      { stopReason: "cancelled" },
      { stopReason: "cancelled" },
    ]);
    expect(editor.provider.requests).toHaveLength(3);
  });

  test("questions of the agent and of MCP servers are forms where the editor shows them", async () => {
    const questions = [
      {
        question: "Which colour?",
        header: "Colour",
        options: [
          { label: "Red", description: "warm" },
          { label: "Blue", description: "cold" },
        ],
        multiSelect: false,
      },
    ];
    const editor = await createEditor(
      [{ calls: [{ name: "AskUserQuestion", input: { questions } }] }, "Blue it is."],
      () => "allow",
      {
        capabilities: { elicitation: { form: {} } },
        fill: () => ({ action: "accept", content: { question1: "Blue" } }),
      },
    );
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, "ask me");
    expect(editor.forms).toMatchObject([
      {
        mode: "form",
        sessionId,
        requestedSchema: {
          properties: { question1: { type: "string", oneOf: [{ const: "Red" }, { const: "Blue" }] } },
        },
      },
    ]);
    expect(JSON.stringify(editor.provider.requests[1]?.request.messages)).toContain("Blue");
    const server = {
      name: "st",
      command: process.execPath,
      args: [join(projectRoot, "test/fixtures/mcp/unruly-server.mjs")],
      env: [],
    };
    const served = await createEditor(
      [{ calls: [{ name: "mcp__st__ask", input: {} }] }, "Green."],
      () => "allow",
      {
        capabilities: { elicitation: { form: {} } },
        fill: () => ({ action: "accept", content: { colour: "green" } }),
      },
    );
    await served.prompt((await served.open({ mcpServers: [server] })).sessionId, "ask the server");
    expect(served.forms).toMatchObject([{ mode: "form", message: "st: Which colour?" }]);
    expect(JSON.stringify(served.provider.requests[1]?.request.messages)).toContain("green");
    const without = await createEditor([
      { calls: [{ name: "AskUserQuestion", input: { questions } }] },
      "Well.",
    ]);
    await without.prompt((await without.open()).sessionId, "ask me");
    expect(without.forms).toEqual([]);
  });

  test("a server that asks while its session is opened is answered, by the request that opens it [DRP-1]", async () => {
    const editor = await createEditor(["Fine."], () => "allow", {
      capabilities: { elicitation: { form: {} } },
      fill: () => ({ action: "accept", content: { colour: "green" } }),
    });
    const args = [join(projectRoot, "test/fixtures/mcp/unruly-server.mjs"), "ask-first"];
    const mcpServers = [{ name: "st", command: process.execPath, args, env: [] }];
    const { sessionId } = await editor.open({ mcpServers });
    expect(editor.forms).toMatchObject([{ mode: "form", requestId: expect.anything() }]);
    await editor.prompt(sessionId, "hi");
    expect(JSON.stringify(editor.provider.requests[0]?.request.tools)).toContain("green");
  });

  test("wrong input gets an error answer, and the next request works", async () => {
    const editor = await createEditor(["Fine."]);
    await expect(editor.open({ cwd: "nowhere" })).rejects.toThrow("absolute path");
    await expect(editor.prompt("no-such-session", "hi")).rejects.toThrow("no session");
    const { sessionId } = await editor.open();
    expect(await editor.prompt(sessionId, "hi")).toEqual({ stopReason: "end_turn" });
  });

  const emptyPrompt = "No prompt was given";
  const noFile = "is not a file URL";
  test.each<[string, acp.ContentBlock[], string]>([
    ["nothing", [], emptyPrompt],
    ["blank text", [{ type: "text", text: " \n" }], emptyPrompt],
    [
      "a file whose address cannot be decoded",
      [{ type: "resource_link", name: "a", uri: "file:///%zz" }],
      noFile,
    ],
    ["a file without an address", [{ type: "resource_link", name: "a", uri: "file://[" }], noFile],
    [
      "sound",
      [{ type: "audio", data: "", mimeType: "audio/wav" }],
      "cannot contain a block of the type audio",
    ],
  ])("a prompt with %s is refused as a wrong request, and no model is asked", async (_, prompt, message) => {
    const editor = await createEditor(["Here."]);
    const { sessionId } = await editor.open();
    await expect(
      editor.agent.request(acp.methods.agent.session.prompt, { sessionId, prompt }),
    ).rejects.toMatchObject({ code: -32602, message: expect.stringContaining(message) });
    expect(editor.provider.requests).toHaveLength(0);
    expect(await editor.prompt(sessionId, "hello")).toEqual({ stopReason: "end_turn" });
  });

  test.each([
    "relative",
    "/no/such/folder",
    "/tmp/\0",
  ])("a session in %j is refused with what a folder must be", async (cwd) => {
    const editor = await createEditor([]);
    await expect(editor.open({ cwd })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining("absolute path of a folder"),
    });
  });

  test("a failure of the provider is an error answer with its reason", async () => {
    const editor = await createEditor([{ failure: "unauthorized" }]);
    const { sessionId } = await editor.open();
    await expect(editor.prompt(sessionId, "hi")).rejects.toThrow(/key|401|unauthorized/i);
  });

  test("without a key a prompt is an error, and no offline answer", async () => {
    const editor = await createEditor([], undefined, { key: false });
    const { sessionId } = await editor.open();
    await expect(editor.prompt(sessionId, "hi")).rejects.toThrow("No API key is configured");
    expect(editor.texts("agent_message_chunk")).toEqual([]);
  });

  test("the process ends when the editor closes its input", async () => {
    const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 1 } };
    const { code, out } = await runCommand(createPlace(), ["acp"], {
      input: `${JSON.stringify(initialize)}\n`,
    });
    expect([code, JSON.parse(out).result.agentInfo.name]).toEqual([0, "retinue"]);
  });
});

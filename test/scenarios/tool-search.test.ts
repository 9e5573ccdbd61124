import { join } from "node:path";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createFakeMcpServer, type FakeMcpServer } from "@retinue/testing/fake-mcp-server.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime, createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { countedServer } from "./counted-server.ts";

const search = (query: string, more: object = {}): Step => ({
  calls: [{ name: "ToolSearch", input: { query, ...more } }],
});
const calling = (...calls: ScriptedCall[]): Step => ({ calls });
const spawning = (agent: string): Step =>
  calling({ name: "Agent", input: { description: "work", prompt: "Work.", subagent_type: agent } });
const names = (request: ModelRequest | undefined) => request?.tools.map(({ name }) => name) ?? [];
const served = (request: ModelRequest | undefined) => names(request).filter((name) => /^mcp__/.test(name));
const lastOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));

/** A server with tools `send_mail`, `read_mail` and as many others as wanted. */
function mailServer(others = 3, words = 10): FakeMcpServer {
  const described = (name: string) => ({
    name,
    description: `${name.replaceAll("_", " ")}. ${"word ".repeat(words)}`,
    inputSchema: { type: "object", properties: { to: { type: "string" } } },
    call: () => `${name} is done`,
  });
  const more = Array.from({ length: others }, (_, at) => `other_${at}`);
  return createFakeMcpServer(["send_mail", "read_mail", ...more].map(described));
}

function options(
  instance: FakeMcpServer,
  mode: string | undefined,
  more: RuntimeOptions & { readonly server?: object } = {},
): RuntimeOptions {
  const { server, ...rest } = more;
  return {
    canUseTool: async () => ({ behavior: "allow" }),
    mcpServers: { post: { type: "sdk", instance, ...server } as never },
    env: {
      PATH: process.env["PATH"],
      RETINUE_LOCAL_MODELS: "0",
      ...(mode === undefined ? {} : { ENABLE_TOOL_SEARCH: mode }),
    },
    ...rest,
  };
}

describe("[MCP-5] tools on demand", () => {
  test("a tool that was found is called by its own name: for rules, hooks and the transcript", async () => {
    const mail = mailServer();
    const asked: string[] = [];
    const hooked: unknown[] = [];
    await using sample = await createSampleRuntime(
      [
        search("send a mail", { max_results: 1 }),
        calling({ name: "mcp__post__send_mail", input: { to: "ann" } }),
        search("select:read_mail"),
        "Done.",
      ],
      options(mail, "true", {
        canUseTool: async (tool) => {
          asked.push(tool);
          return { behavior: "allow" };
        },
        hooks: {
          PreToolUse: [
            {
              hooks: [
                async (input: { readonly tool_name?: unknown }) => {
                  hooked.push(input.tool_name);
                  return {};
                },
              ],
            },
          ],
        },
      }),
    );
    const events: string[] = [];
    const run = sample.runtime.run("Go.");
    for await (const event of run.events)
      if (event.type === "call-finished") events.push(`${event.call.name} ${event.isError}`);
    expect(await run.result).toMatchObject({ text: "Done." });
    const { requests } = sample;
    expect(names(requests[0])).toContain("ToolSearch");
    expect(requests.map(served)).toEqual([
      [],
      ["mcp__post__send_mail"],
      ["mcp__post__send_mail"],
      ["mcp__post__send_mail", "mcp__post__read_mail"],
    ]);
    // What was there stays where it was, so that caches hold.
    for (const [at, request] of requests.slice(1).entries())
      expect(names(request).slice(0, names(requests[at]).length)).toEqual(names(requests[at]));
    expect(requests[1]?.tools.at(-1)?.inputSchema).toMatchObject({ properties: { to: { type: "string" } } });
    expect(lastOf(requests[2])).toContain("send_mail is done");
    expect(mail.calls).toEqual([{ tool: "send_mail", input: { to: "ann" } }]);
    expect(events).toEqual(["ToolSearch false", "mcp__post__send_mail false", "ToolSearch false"]);
    expect(asked).toEqual(["mcp__post__send_mail"]);
    expect(hooked).toEqual(["ToolSearch", "mcp__post__send_mail", "ToolSearch"]);
  });

  test.each([
    { name: "few small tools are shown", mode: undefined, others: 8, words: 10, deferred: false },
    { name: "many large ones are not", mode: undefined, others: 98, words: 300, deferred: true },
    { name: "auto is the same", mode: "auto", others: 8, words: 10, deferred: false },
    { name: "a lower threshold counts", mode: "auto:0.1", others: 8, words: 60, deferred: true },
    { name: "false shows all", mode: "false", others: 98, words: 300, deferred: false },
    { name: "true defers any", mode: "true", others: 0, words: 1, deferred: true },
    { name: "what cannot be read is the default", mode: "auto:x", others: 8, words: 10, deferred: false },
  ])("$name", async ({ mode, others, words, deferred }) => {
    await using sample = await createSampleRuntime(["Done."], options(mailServer(others, words), mode));
    await sample.runtime.run("Go.").result;
    expect(names(sample.requests[0]).includes("ToolSearch")).toBe(deferred);
    expect(served(sample.requests[0])).toHaveLength(deferred ? 0 : others + 2);
  });

  test.each([
    { name: "a deny rule for ToolSearch", more: { disallowedTools: ["ToolSearch"] } },
    { name: "alwaysLoad of the server", more: { server: { alwaysLoad: true } } },
  ])("$name shows all tools", async ({ more }) => {
    await using sample = await createSampleRuntime(["Done."], options(mailServer(), "true", more));
    await sample.runtime.run("Go.").result;
    expect(names(sample.requests[0])).not.toContain("ToolSearch");
    expect(served(sample.requests[0])).toHaveLength(5);
  });

  test("a denied tool is not found, and a call that was not looked for runs and is shown from then on", async () => {
    const mail = mailServer();
    await using sample = await createSampleRuntime(
      [
        search("send mail", { max_results: 20 }),
        calling({ name: "mcp__post__other_2", input: {} }),
        search("nothing like this"),
        calling({ name: "mcp__post__send_mail", input: {} }),
        "Done.",
      ],
      options(mail, "true", { disallowedTools: ["mcp__post__send_mail"] }),
    );
    await sample.runtime.run("Go.").result;
    const { requests } = sample;
    expect(served(requests[1])).toEqual(["mcp__post__read_mail"]);
    expect(served(requests[2])).toEqual(["mcp__post__read_mail", "mcp__post__other_2"]);
    expect(lastOf(requests[3])).toContain("No tool matches");
    expect(lastOf(requests[4])).toContain("There is no tool");
    expect(lastOf(requests[4])).not.toContain("other_1");
    expect(mail.calls.map(({ tool }) => tool)).toEqual(["other_2"]);
  });

  test("a session that is continued has what it had found", async () => {
    await using sample = await createSampleRuntime([]);
    const mail = mailServer();
    const first = sample.restart([search("select:read_mail"), "Found."], options(mail, "true"));
    const { sessionId } = await first.runtime.run("Go.").result;
    await first.runtime[Symbol.asyncDispose]();
    const next = sample.restart(["Still there."], options(mailServer(), "true"));
    await next.runtime.run("And now?", { resume: sessionId }).result;
    expect(served(next.requests[0])).toEqual(["mcp__post__read_mail"]);
  });

  test("a replay asks for the same tools at the same turns [RPL-1]", async () => {
    await using sample = await createSampleRuntime(
      [search("select:send_mail"), calling({ name: "mcp__post__send_mail", input: {} }), "Done."],
      options(mailServer(), "true"),
    );
    const { sessionId } = await sample.runtime.run("Go.").result;
    const replayed = await sample.runtime.replay(sessionId);
    expect(replayed.differences).toEqual([]);
    expect(replayed.requests).toMatchObject({ made: 3, same: 3 });
  });

  test("children inherit what was found as far as they may use it, and search for themselves", async () => {
    const agent = (name: string, more: object = {}) => ({
      name,
      description: "Works.",
      prompt: "Work.",
      ...more,
    });
    await using sample = await createSampleRuntime(
      [
        search("select:send_mail,read_mail"),
        spawning("heir"),
        "Inherited.",
        spawning("reader"),
        "Read.",
        spawning("whole"),
        search("other", { max_results: 1 }),
        "Searched.",
        spawning("without"),
        "Nothing.",
        "Done.",
      ],
      options(mailServer(), "true", {
        agents: [
          agent("heir", { disallowedTools: ["mcp__post__send_mail"] }),
          agent("reader", { tools: ["Read", "mcp__post__read_mail"] }),
          agent("whole", { tools: ["Read", "mcp__post"] }),
          agent("without", { tools: ["Read"] }),
        ],
      }),
    );
    expect(await sample.runtime.run("Go.").result).toMatchObject({ text: "Done." });
    const { requests } = sample;
    const searching = (at: number) => names(requests[at]).includes("ToolSearch");
    expect([served(requests[2]), searching(2)]).toEqual([["mcp__post__read_mail"], true]);
    // Who names a tool has it, and needs no search.
    expect([served(requests[4]), searching(4)]).toEqual([["mcp__post__read_mail"], false]);
    expect([served(requests[6]), searching(6)]).toEqual([
      ["mcp__post__send_mail", "mcp__post__read_mail"],
      true,
    ]);
    expect(served(requests[7])).toEqual([
      "mcp__post__send_mail",
      "mcp__post__read_mail",
      "mcp__post__other_0",
    ]);
    expect([served(requests[9]), searching(9)]).toEqual([[], false]);
    // What a child finds is its own.
    expect(served(requests[10])).toEqual(["mcp__post__send_mail", "mcp__post__read_mail"]);
  });

  test("a child that starts with the conversation has the tools of its parent in the same order", async () => {
    await using sample = await createSampleRuntime(
      [search("select:send_mail"), spawning("fork"), "Forked.", "Done."],
      options(mailServer(), "true", {
        agents: [{ name: "fork", description: "Works.", prompt: "Work.", forkContext: true }],
      }),
    );
    expect(await sample.runtime.run("Go.").result).toMatchObject({ text: "Done." });
    const [, parent, child] = sample.requests;
    const found = parent?.tools.at(-1);
    expect(found).toMatchObject({ name: "mcp__post__send_mail", loading: "found" });
    expect(child?.tools.at(-1)).toBe(found);
  });

  test("a child whose own server has many tools searches too", async () => {
    await using sample = await createSampleRuntime([]);
    const { config } = countedServer(sample.workspace.root, "server-everything");
    const { runtime, requests } = sample.restart(
      [
        spawning("own"),
        search("echo", { max_results: 1 }),
        calling({ name: "mcp__mine__echo", input: { message: "hello" } }),
        "Echoed.",
        "Done.",
      ],
      {
        canUseTool: async () => ({ behavior: "allow" }),
        env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ENABLE_TOOL_SEARCH: "true" },
        agents: [{ name: "own", description: "Works.", prompt: "Work.", mcpServers: [{ mine: config }] }],
      },
    );
    expect(await runtime.run("Go.").result).toMatchObject({ text: "Done." });
    expect(names(requests[0])).not.toContain("ToolSearch");
    expect(requests.map(served)).toEqual([[], [], ["mcp__mine__echo"], ["mcp__mine__echo"], []]);
    expect(lastOf(requests[3])).toContain("Echo: hello");
  });
});

interface WireTool {
  readonly name: string;
  readonly defer_loading?: boolean;
  readonly function?: { readonly name: string };
}

async function runOn(
  model: string,
  script: readonly Step[],
  environment: Readonly<Record<string, string | undefined>>,
) {
  const workspace = await createWorkspace();
  const provider = await startFakeProvider({ script });
  const mail = mailServer(98, 300);
  const runtime = createRuntime({
    cwd: workspace.project,
    home: join(workspace.root, "home"),
    managedDirectory: join(workspace.root, "managed"),
    ...options(mail, undefined),
    env: {
      PATH: process.env["PATH"],
      ANTHROPIC_API_KEY: "key",
      ANTHROPIC_BASE_URL: provider.url,
      OPENAI_BASE_URL: `${provider.url}/v1`,
      ...environment,
    },
    settings: JSON.stringify({
      modelOverrides: { "openai-compatible/house-model": { contextWindow: 50_000 } },
    }),
  });
  onTestFinished(async () => {
    await runtime[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    await workspace[Symbol.asyncDispose]();
  });
  const result = await runtime.run("Go.", { model }).result;
  expect(result).toMatchObject({ status: "completed", text: "Done." });
  provider.finish();
  const tools = provider.requests.map(({ body }) => body["tools"] as readonly WireTool[]);
  return { provider, mail, tools };
}

const script: readonly Step[] = [
  search("select:send_mail"),
  calling({ name: "mcp__post__send_mail", input: { to: "ann" } }),
  "Done.",
];

describe("[MCP-5] on the wire", () => {
  test("Anthropic's API loads the tool where it was found, and the cache holds", async () => {
    const { provider, mail, tools } = await runOn("claude-sonnet-4-5", script, {
      ENABLE_TOOL_SEARCH: "true",
    });
    const deferred = tools.map((list) => list.filter((tool) => tool.defer_loading).map(({ name }) => name));
    expect(deferred).toEqual([
      ["deferred_tools"],
      ["deferred_tools", "mcp__post__send_mail"],
      ["deferred_tools", "mcp__post__send_mail"],
    ]);
    const [first, second, third] = provider.requests;
    expect(first?.headers["anthropic-beta"]).toContain("advanced-tool-use-2025-11-20");
    expect(JSON.stringify(second?.body["messages"])).toContain(
      '"content":[{"type":"tool_reference","tool_name":"mcp__post__send_mail"}]',
    );
    expect(mail.calls).toHaveLength(1);
    // All that the request before had written is read.
    for (const [before, after] of [
      [first, second],
      [second, third],
    ]) {
      const { cacheReadTokens = 0, cacheWriteTokens = 0 } = before?.usage ?? {};
      expect(after?.usage?.cacheReadTokens).toBe(cacheReadTokens + cacheWriteTokens);
    }
  });

  test.each([
    { name: "another host", model: "claude-sonnet-4-5", environment: {} },
    {
      name: "no experiments",
      model: "claude-sonnet-4-5",
      environment: { ENABLE_TOOL_SEARCH: "true", CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1" },
    },
    { name: "another provider", model: "openai-compatible/house-model", environment: {} },
  ])("$name gets the tool behind the others", async ({ model, environment }) => {
    const { provider, mail, tools } = await runOn(model, script, environment);
    const listed = tools.map((list) => list.map((tool) => tool.function?.name ?? tool.name));
    expect(JSON.stringify(tools)).not.toContain("defer_loading");
    expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain("tool_reference");
    expect(listed[1]).toEqual([...(listed[0] ?? []), "mcp__post__send_mail"]);
    expect(listed[2]).toEqual(listed[1]);
    expect(JSON.stringify(provider.requests[1]?.body["messages"])).toContain("Loaded: mcp__post__send_mail");
    expect(mail.calls).toHaveLength(1);
  });
});

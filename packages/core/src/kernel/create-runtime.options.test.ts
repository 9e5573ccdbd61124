import { existsSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime, createWorkspace } from "@retinue/testing/sample-runtime.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, it, test } from "vitest";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import { defineTool } from "../tools/tool.ts";
import { createRuntime } from "./create-runtime.ts";

/** As plain JavaScript would call it. */
function misused(use: (runtime: ReturnType<typeof createRuntime>) => unknown): string {
  try {
    use(createRuntime({ home: "/nowhere" }));
  } catch (error) {
    if (isRetinueError(error)) return error.message;
    throw error;
  }
  return "nothing was thrown";
}

const any = (value: unknown): never => value as never;

describe("what can be mistyped is answered with one sentence and the closest match [SDK-1]", () => {
  test.each<[string, (runtime: ReturnType<typeof createRuntime>) => unknown, RegExp]>([
    [
      "an option",
      (r) => r.run("x", any({ maxTurn: 3 })),
      /"maxTurn" is not an option of run\(\)\. Did you mean "maxTurns"\?/,
    ],
    ["an old name", (r) => r.run("x", any({ maxBudget: 3 })), /Did you mean "maxBudgetUsd"\?/],
    ["another library's name", (r) => r.run("x", any({ stopWhen: 3 })), /Did you mean "maxTurns"\?/],
    [
      "an option of another function",
      (r) => r.run("x", any({ home: "." })),
      /It is an option of createRuntime\(\)\./,
    ],
    [
      "a mode",
      (r) => r.run("x", any({ permissionMode: "acceptEdit" })),
      /must be one of default, .* \(did you mean "acceptEdits"\?\), but is "acceptEdit"/,
    ],
    ["an effort", (r) => r.run("x", any({ effort: "hihg" })), /did you mean "high"\?/],
    ["a model", (r) => r.run("x", any({ model: 7 })), /must be the name of a model.*but is 7/],
    ["a number", (r) => r.run("x", any({ maxTurns: "3" })), /must be a number, but is "3"/],
    ["a list", (r) => r.run("x", any({ allowedTools: "Read" })), /must be a list of strings, but is "Read"/],
    ["a signal", (r) => r.run("x", any({ signal: {} })), /must be an AbortSignal/],
    ["no prompt", (r) => r.run(any(undefined)), /The prompt of run\(\) must be a string/],
    ["options that are none", (r) => r.run("x", any("fast")), /The options of run\(\) must be an object/],
    ["no agent", (r) => r.spawn(any({}), "x"), /must be the name of an agent/],
    [
      "an option of spawn",
      (r) => r.spawn("Explore", "x", any({ continue: true })),
      /not an option of spawn\(\)/,
    ],
    [
      "an event",
      () => createRuntime(any({ hooks: { PreToolUsed: [() => ({})] } })),
      /Did you mean PreToolUse\?/,
    ],
    ["a hook", () => createRuntime(any({ hooks: { PreToolUse: ["x"] } })), /must be functions/],
    ["a tool", () => createRuntime(any({ tools: [{ name: "x" }] })), /The tool "x" has no function call/],
    [
      "an agent",
      () => createRuntime(any({ agents: ["x"] })),
      /An agent in the option agents must be an object/,
    ],
    ["a source", () => createRuntime(any({ settingSources: ["users"] })), /did you mean "user"\?/],
    ["a number of children", () => createRuntime({ concurrency: 0 }), /must be a whole number from 1/],
    ["a clock", () => createRuntime(any({ clock: { a: 1 } })), /must have a function now\(\)/],
    ["an approver", () => createRuntime(any({ approver: {} })), /must have a function approve\(\)/],
    ["a host", () => createRuntime(any({ host: { ask: true } })), /must have a function ask\(\)/],
    ["variables", () => createRuntime(any({ env: [42] })), /must be an object of strings/],
    ["servers", () => createRuntime(any({ mcpServers: [{}] })), /must be an object keyed by name/],
    [
      "a matcher",
      () => createRuntime(any({ hooks: { PreToolUse: [{ matcher: /bash/i, hooks: [() => ({})] }] } })),
      /a regular expression with flags/,
    ],
    [
      "a timeout",
      () => createRuntime(any({ hooks: { PreToolUse: [{ timeout: "5", hooks: [() => ({})] }] } })),
      /must be a number of seconds, but is "5"/,
    ],
    ["a store", () => createRuntime(any({ store: {} })), /must have a function run\(\)/],
    ["a home", () => createRuntime({ home: "/proc/nope" }), /is part of the system/],
    [
      "messages in place of blocks",
      (runtime) => runtime.run(any([{ role: "user", content: "x" }])),
      /list of content blocks such as/,
    ],
    ["what to do with more", () => createRuntime(any({ overflow: "queu" })), /did you mean "queue"\?/],
  ])("%s", (_what, use, expected) => {
    expect(misused(use)).toMatch(expected);
  });
});

it("a regular expression as a matcher is the text of it", async () => {
  const seen: string[] = [];
  const call = (name: string, input: object) => ({ calls: [{ name, input }] });
  await using sample = await createSampleRuntime([call("Read", { file_path: "a" }), "Done."], {
    hooks: {
      PreToolUse: [
        { matcher: /Bash/ as never, hooks: [() => void seen.push("Bash")] },
        { matcher: /^Read$/ as never, hooks: [() => void seen.push("Read")] },
      ],
    },
  });
  await sample.runtime.run("Go.").result;
  expect(seen).toEqual(["Read"]);
});

it.each([
  [{ tool: "real" }, /"tool" is not an option of replay\(\)\. Did you mean "tools"\?/],
  [{ tools: "reel" }, /did you mean "real"\?/],
])("a replay with %j is refused", async (options, expected) => {
  await using runtime = createRuntime({ home: "/nowhere" });
  await expect(runtime.replay("1", options as never)).rejects.toThrow(expected);
  await expect(runtime.replay(5 as never)).rejects.toThrow(/must be the id of a session, but is 5/);
});

it("a working folder that is not there ends the start", async () => {
  await using runtime = createRuntime({ cwd: "/nowhere/at/all", home: "/nowhere", model: "offline" });
  await expect(runtime.run("Go.").result).rejects.toMatchObject({
    code: "unusable-folder",
    message: expect.stringContaining("does not exist"),
  });
});

describe("a limit of a session that would not be kept ends the start [LIM-3]", () => {
  it.each([
    { usd: 1 },
    { seconds: 5 },
    { agents: 3 },
    { tree: { toolSeconds: 5 } },
    { tree: { second: 5 } },
  ])("%j", async (limits) => {
    await using sample = await createSampleRuntime([]);
    await expect(sample.runtime.run("Go.", { limits: limits as never }).result).rejects.toThrow(/^limits/);
  });
});

describe("shapes of other libraries work [SDK-1]", () => {
  const call = (name: string, input: object) => ({ calls: [{ name, input }] });
  const weather = { city: "Rome" };

  it("agents as a record, and hooks as an object by event", async () => {
    const seen: string[] = [];
    await using sample = await createSampleRuntime([call("Bash", { command: "rm x" }), "No."], {
      agents: { scout: { description: "Looks.", prompt: "You look.", tools: ["Bash"] } },
      hooks: {
        PreToolUse: [
          {
            matcher: "Bash",
            hooks: [
              async (input, id, { signal }) => {
                seen.push(`${input.tool_name} ${typeof id} ${signal.aborted}`);
                return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny" } };
              },
            ],
          },
        ],
      },
    });
    const result = await sample.runtime.spawn("scout", "Look.").result;
    expect(result.denials).toHaveLength(1);
    expect(seen).toEqual(["Bash string false"]);
  });

  it.each([
    ["zod 4", z.object({ city: z.string() })],
    ["zod 3", z3.object({ city: z3.string().describe("A city."), days: z3.number().int().optional() })],
  ])("a tool with %s that returns a string", async (_what, input) => {
    const tool = defineTool({
      name: "weather",
      description: "Shows the weather.",
      effect: "read",
      input,
      call: ({ city }) => `Sunny in ${city}.`,
    });
    const wrong = call("weather", { city: 7 });
    await using sample = await createSampleRuntime([wrong, call("weather", weather), "Sun."], {
      tools: ["default", tool],
    });
    const handle = sample.runtime.run("Weather?");
    const contents: unknown[] = [];
    for await (const event of handle.events) if (event.type === "call-finished") contents.push(event.content);
    expect(contents).toEqual([
      expect.stringMatching(/The input of weather is not valid\. `city`/),
      "Sunny in Rome.",
    ]);
    const offered = sample.requests[0]?.tools.find(({ name }) => name === "weather");
    expect(offered?.inputSchema).toMatchObject({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
    });
  });

  it("tools of the AI SDK by name, a Standard Schema, fields alone as in the Agent SDK, and names in one list", async () => {
    // As the errors of ArkType are.
    const listWithIssues = Object.assign([], { issues: [{ message: "a list that has issues" }] });
    const standard = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) => {
          if (Object.hasOwn(Object(value), "town")) return listWithIssues;
          return Object.hasOwn(Object(value), "city") ? { value } : { issues: [{ message: "no city" }] };
        },
        jsonSchema: { input: () => ({ type: "object", properties: { city: { type: "string" } } }) },
      },
    };
    const tools = {
      weather: {
        description: "Weather.",
        inputSchema: standard,
        execute: async (input: object) => ({ ...input, sun: true }),
      },
    };
    await using sample = await createSampleRuntime(
      [call("weather", {}), call("weather", { town: 1 }), call("weather", weather), "Done."],
      { tools },
    );
    const { denials, text } = await sample.runtime.run("Go.", { allowedTools: ["weather"] }).result;
    expect({ denials, text }).toEqual({ denials: [], text: "Done." });
    const results = JSON.stringify(sample.requests.at(-1)?.messages);
    expect(results).toContain("the input: no city");
    expect(results).toContain("the input: a list that has issues");
    expect(results).toContain('{\\"city\\":\\"Rome\\",\\"sun\\":true}');

    const handler = async ({ city }: { city: string }) => ({
      content: [{ type: "text", text: `Rain in ${city}.` }],
    });
    const agentSdk = { name: "rain", description: "Rain.", inputSchema: { city: z.string() }, handler };
    await using other = await createSampleRuntime([call("rain", weather), "Done."], {
      tools: ["Read", agentSdk],
    });
    await other.runtime.run("Go.", { allowedTools: ["rain"] }).result;
    expect(JSON.stringify(other.requests.at(-1)?.messages)).toContain("Rain in Rome.");
    expect(other.requests[0]?.tools.map(({ name }) => name).sort()).toEqual(["Read", "rain"]);
  });

  it("a model of the AI SDK for a runtime, and another model for one run", async () => {
    await using provider = await startFakeProvider({ script: ["From the SDK."] });
    const model = createOpenAICompatible({ name: "local", baseURL: `${provider.url}/v1` })("any");
    await using workspace = await createWorkspace();
    await using runtime = createRuntime({
      cwd: workspace.project,
      home: join(workspace.root, "home"),
      model,
    });
    expect((await runtime.run("Go.").result).text).toBe("From the SDK.");
    expect((await runtime.run("Go.", { model: createScriptedModel(["Mine."]) }).result).text).toBe("Mine.");
    const spawned = runtime.spawn("Explore", "Look.", { model: createScriptedModel(["The child's."]) });
    expect((await spawned.result).text).toBe("The child's.");
  });

  it("the name of a model for one run or child goes before a model object of the runtime", async () => {
    await using sample = await createSampleRuntime(["From the object."]);
    await using session = await sample.runtime.open({ model: "offline" });
    expect(session.plan.model.value).toBe("offline");
    const { text } = await sample.runtime.spawn("Explore", "Look.", { model: "offline" }).result;
    expect(text).not.toBe("From the object.");
    expect((await sample.runtime.run("Go.").result).text).toBe("From the object.");
  });

  it("a prompt for one child takes the place of its definition's, or is added to it", async () => {
    await using sample = await createSampleRuntime(["One.", "Two."]);
    await sample.runtime.spawn("Explore", "Look.", { systemPrompt: "You are a poet." }).result;
    await sample.runtime.spawn("Explore", "Look.", { appendSystemPrompt: "Answer in French." }).result;
    const [first, second] = sample.requests.map(({ system }) => system.join("\n"));
    expect(first).toMatch(/^You are a poet\./);
    expect(second).not.toMatch(/^Answer in French\./);
    expect(second).toContain("Answer in French.");
  });

  it("settings as an object are read as those of a file", async () => {
    const bash = { calls: [{ name: "Bash", input: { command: "touch made" } }] };
    await using sample = await createSampleRuntime([bash, "Done."], {
      settings: { permissions: { allow: ["Bash(touch made)"] } },
    });
    expect((await sample.runtime.run("Go.").result).denials).toEqual([]);
    const wrong = any({ settings: ["a"] });
    expect(() => createRuntime(wrong)).toThrow(/must be the path of a settings file, JSON text or an object/);
  });

  it("at most `concurrency` children run at the same time, and `overflow` says what happens to one more", async () => {
    const stall = { text: "Never", failure: "stall", after: 1 } as const;
    await using sample = await createSampleRuntime([stall], { concurrency: 1, overflow: "refuse" });
    const first = sample.runtime.spawn("Explore", "Look.");
    await first.started;
    await expect(sample.runtime.spawn("Explore", "Look.").result).rejects.toThrow(
      /max concurrent agents reached \(1\)/,
    );
    await first.stop();
  });
});

describe("a library does not obey settings files unless asked [SDK-1]", () => {
  async function createStage() {
    const workspace = await createWorkspace();
    const home = join(workspace.root, "home");
    await mkdir(join(home, ".claude", "agents"), { recursive: true });
    const hook = { hooks: [{ type: "command", command: `touch ${join(workspace.root, "hooked")}` }] };
    await writeFile(
      join(home, ".claude", "settings.json"),
      JSON.stringify({
        permissions: {
          allow: ["Bash(touch *)"],
          deny: ["Read(secret.txt)"],
          defaultMode: "bypassPermissions",
        },
        hooks: { PreToolUse: [hook] },
        env: { FROM_SETTINGS: "1" },
        apiKeyHelper: `touch ${join(workspace.root, "helped")}; echo key`,
      }),
    );
    await writeFile(
      join(home, ".claude.json"),
      JSON.stringify({ mcpServers: { mine: { command: "/nowhere" } } }),
    );
    const agent = "---\nname: scout\ndescription: Looks.\n---\nYou look.";
    await writeFile(join(home, ".claude", "agents", "scout.md"), agent);
    await workspace.write("secret.txt", "secret");
    const model = () =>
      createScriptedModel([
        { calls: [{ name: "Bash", input: { command: "touch made" } }] },
        { calls: [{ name: "Read", input: { file_path: workspace.path("secret.txt") } }] },
        "Done.",
      ]);
    const options = { cwd: workspace.project, home, managedDirectory: join(workspace.root, "managed") };
    return { workspace, home, model, options };
  }

  it("finds agents and obeys deny rules, but runs no hook, starts no server, allows nothing and writes nothing", async () => {
    const { workspace, home, model, options } = await createStage();
    await using _gone = workspace;
    const before = readdirSync(home, { recursive: true }).map(String).sort();
    {
      await using runtime = createRuntime({ ...options, model: model() });
      await using session = await runtime.open();
      expect(session.mcpServers().map(({ status }) => status.type)).not.toContain("connected");
      expect(session.mcpServers().map(({ status }) => status.type)).not.toContain("failed");
      const { denials } = await session.run("Go.").result;
      expect(denials.map(({ call: { name } }) => name)).toEqual(["Bash", "Read"]);
      const { registry } = await runtime.agents();
      expect(registry.find("scout").type).toBe("found");
    }
    expect(existsSync(join(workspace.root, "hooked"))).toBe(false);
    expect(existsSync(join(workspace.root, "helped"))).toBe(false);
    expect(readdirSync(home, { recursive: true }).map(String).sort()).toEqual(before);
  });

  it("uses the servers and hooks of the plugins that the program names, and of no other", async () => {
    const { workspace, home, model, options } = await createStage();
    await using _gone = workspace;
    const plugin = join(workspace.root, "plugin");
    for (const [root, name] of [
      [plugin, "named"],
      [join(home, ".claude", "plugins", "other"), "other"],
    ] as const) {
      await mkdir(join(root, ".claude-plugin"), { recursive: true });
      await writeFile(join(root, ".claude-plugin", "plugin.json"), JSON.stringify({ name }));
      await writeFile(
        join(root, ".mcp.json"),
        JSON.stringify({ mcpServers: { it: { command: "/nowhere" } } }),
      );
    }
    await using runtime = createRuntime({ ...options, model: model(), pluginDirectories: [plugin] });
    await using session = await runtime.open();
    const tried = session.mcpServers().filter(({ status }) => status.type === "failed");
    expect(tried.map(({ name }) => name)).toEqual(["plugin:named:it"]);
  });

  it("runs hooks of plugins only where the program names them, and lets no sandbox of a file allow commands", async () => {
    const { workspace, home, model, options } = await createStage();
    await using _gone = workspace;
    const plugin = join(home, ".claude", "plugins", "watcher");
    await mkdir(join(plugin, ".claude-plugin"), { recursive: true });
    await mkdir(join(plugin, "hooks"));
    await writeFile(join(plugin, ".claude-plugin", "plugin.json"), '{"name":"watcher"}');
    const hook = { hooks: [{ type: "command", command: `touch ${join(workspace.root, "by-plugin")}` }] };
    await writeFile(join(plugin, "hooks", "hooks.json"), JSON.stringify({ hooks: { PreToolUse: [hook] } }));
    await writeFile(
      join(home, ".claude", "settings.json"),
      JSON.stringify({ sandbox: { enabled: true, autoAllowBashIfSandboxed: true } }),
    );
    for (const named of [false, true]) {
      const pluginDirectories = named ? [plugin] : [];
      await using runtime = createRuntime({ ...options, model: model(), pluginDirectories });
      const { denials } = await runtime.run("Go.").result;
      expect(denials.map(({ call: { name } }) => name)).toEqual(["Bash"]);
      expect(existsSync(join(workspace.root, "by-plugin"))).toBe(named);
    }
  });

  it("obeys them in full, and keeps transcripts, where it is asked to", async () => {
    const { workspace, home, model, options } = await createStage();
    await using _gone = workspace;
    {
      await using runtime = createRuntime({
        ...options,
        model: model(),
        settingSources: ["user"],
        transcripts: true,
      });
      const { denials } = await runtime.run("Go.").result;
      expect(denials.map(({ call: { name } }) => name)).toEqual(["Read"]);
    }
    expect(existsSync(join(workspace.root, "hooked"))).toBe(true);
    expect(existsSync(join(home, ".claude", "projects"))).toBe(true);
  });
});

test.each<[unknown, RegExp]>([
  [[{ event: "PreToolUse", matchr: "Bash", run: () => undefined }], /matcher/],
  [[{ event: "PreToolUse", timeout: 5, run: () => undefined }], /timeoutMs/],
  [{ PreToolUse: [{ matchers: "Bash", hooks: [() => undefined] }] }, /matcher/],
])("a hook with a field that there is not is refused, with the one that was meant: %j [DRP-2]", (hooks, meant) => {
  expect(() => createRuntime({ hooks } as never)).toThrow(meant);
});

import { existsSync, readdirSync } from "node:fs";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { createRuntime, type Runtime } from "../create-runtime.ts";

/** As plain JavaScript would pass it. */
const any = (value: unknown): never => value as never;

/** The sentence of a refusal; anything that is not one of ours fails the test with its own text. */
async function refusal(use: () => unknown): Promise<string> {
  try {
    const given = await use();
    if (typeof given === "object" && given !== null && Symbol.asyncIterator in given)
      for await (const _ of given as AsyncIterable<unknown>) break;
  } catch (error) {
    if (isRetinueError(error) && error.code === "invalid-option") return error.message;
    throw error;
  }
  return "nothing was refused";
}

describe("every argument that JavaScript passes wrongly is refused in one sentence [SDK-1]", () => {
  let runtime: Runtime;
  beforeAll(() => {
    runtime = createRuntime({ cwd: "/", home: "/nowhere", model: createScriptedModel([]) });
  });
  afterAll(() => runtime.close());

  test.each<[string, (runtime: Runtime) => unknown, RegExp]>([
    [
      "agents.get(1)",
      (r) => r.agents.get(any(1)),
      /first argument of agents\.get\(\) must be .*, but is 1\./,
    ],
    ["agents.create({})", (r) => r.agents.create(any({})), /must be an object with name\./],
    ["agents.check(1)", (r) => r.agents.check(any(1)), /must be a list of strings, but is 1\./],
    ["permissions.test()", (r) => r.permissions.test(any(undefined)), /must be a call such as/],
    [
      "permissions.test with a mode that is none",
      (r) => r.permissions.test("Bash(ls)", any({ mode: "plann" })),
      /The option mode of permissions\.test\(\) must be one of .*did you mean "plan"/,
    ],
    ["mcp.get()", (r) => r.mcp.get(any(undefined)), /must be a non-empty string, but is nothing\./],
    ["mcp.add({ name })", (r) => r.mcp.add(any({ name: "x" })), /must be an object with config\./],
    ["sessions.get(1)", (r) => r.sessions.get(any(1)), /sessions\.get\(\) must be a non-empty string/],
    ["sessions.list({ limits })", (r) => r.sessions.list(any({ limits: 1 })), /Did you mean "limit"\?/],
    [
      "sessions.clean with days that are no number",
      (r) => r.sessions.clean(any({ olderThanDays: "x" })),
      /olderThanDays of sessions\.clean\(\) must be a number from 0, but is "x"\./,
    ],
    [
      "tasks.log(1), when it is read",
      (r) => r.tasks.log(any(1)),
      /tasks\.log\(\) must be a non-empty string/,
    ],
    [
      "teams.stop(1), when it is read",
      (r) => r.teams.stop(any(1)),
      /teams\.stop\(\) must be a non-empty string/,
    ],
    ["plugins.validate()", (r) => r.plugins.validate(any(undefined)), /plugins\.validate\(\) must be/],
    ["inspect(1)", (r) => r.inspect(any(1)), /inspect\(\) must be the id of a session, but is 1\./],
    ["createRuntime(null)", () => createRuntime(any(null)), /must be an object, but are null/],
    [
      "a text block without text",
      (r) => r.run(any([{ type: "text" }])),
      /content blocks such as \{ type: "text", text \}, but has an object/,
    ],
    [
      "an option of run in createRuntime",
      () => createRuntime(any({ resume: "x" })),
      /It is an option of run\(\)\./,
    ],
    [
      "a server that is none",
      () => createRuntime({ mcpServers: { a: any(1) } }),
      /has the server "a", which must be an object, but is 1\./,
    ],
    [
      "a server in memory that cannot be connected",
      () => createRuntime({ mcpServers: { a: { type: "sdk", instance: any({}) } } }),
      /needs an instance with a function connect\(\)\./,
    ],
    [
      "a tool whose effect is none",
      () =>
        createRuntime({
          tools: [any({ name: "x", effect: "raed", inputSchema: { type: "object" }, call: () => "" })],
        }),
      /The effect of the tool "x" must be one of read, .*, but is "raed"\. Did you mean "read"\?/,
    ],
    [
      "resumeAt of no session",
      (r) => r.run("x", { resumeAt: "x" }),
      /resumeAt of run\(\) has no effect without resume or continue\./,
    ],
    [
      "an effort above 100",
      (r) => r.run("x", { effort: 101 }),
      /must be a number from 0 to 100, but is 101\./,
    ],
    [
      "a source that is none",
      () => createRuntime(any({ settingSources: ["usr"] })),
      /which must be one of user, project, local \(did you mean "user"\?\)\.$/,
    ],
  ])("%s", async (_, use, sentence) => {
    expect(await refusal(() => use(runtime))).toMatch(sentence);
  });

  it("refuses what a session is given wrongly, and folders that are not there", async () => {
    await using sample = await createSampleRuntime([]);
    await using session = await sample.runtime.open();
    expect(await refusal(() => session.planAgent(any(undefined)))).toMatch(
      /must be an object with agentType/,
    );
    expect(await refusal(() => session.runPlan(any({})))).toMatch(/must be the plan of a child agent/);
    expect(await refusal(() => session.rename(any(1)))).toMatch(/title of session\.rename\(\) must be/);
    expect(await refusal(() => session.stream("x", any(undefined)))).toMatch(/must be an AbortSignal/);
    expect(await refusal(() => sample.runtime.register(any(1))).catch(String)).toMatch(
      /must be an object with name/,
    );
    await using other = createRuntime({
      home: sample.workspace.root,
      cwd: sample.workspace.project,
      additionalDirectories: ["gone"],
    });
    await expect(other.open()).rejects.toThrow(
      'The option additionalDirectories names a folder that does not exist: "gone".',
    );
  });
});

it.each([
  [{ model: any(5) }, /The option settings of createRuntime\(\) cannot be used: The setting "model" must be/],
  [{ permissions: any({ alow: ["Read"] }) }, /Unknown permission setting "alow"/],
])("settings of the program that cannot be used are refused: %j [SDK-1]", async (settings, sentence) => {
  await using sample = await createSampleRuntime([], { settings });
  await expect(sample.runtime.open()).rejects.toThrow(sentence);
});

it("a program is warned of a budget that cannot be kept [LIM-3]", async () => {
  const warnings: string[] = [];
  await using sample = await createSampleRuntime(["Done.", "Done."], {
    onWarning: (text) => void warnings.push(text),
  });
  await sample.runtime.run("Go.", { maxBudgetUsd: 1 }).result;
  await sample.runtime.spawn("Explore", "Go.", { maxBudgetUsd: 1 }).result;
  expect(warnings).toEqual(
    Array(2).fill("The price of scripted is unknown, so the budget cannot be enforced."),
  );
});

it("a child of an earlier process is resumed by its id alone [SDK-1, TRN-3]", async () => {
  await using sample = await createSampleRuntime(["One."]);
  const { agentId, sessionId } = await sample.runtime.spawn("Explore", "First.").result;
  await sample.runtime.close();
  const { runtime, requests } = sample.restart(["Two.", "Three."]);
  const second = await runtime.spawn("Explore", "Second.", { resume: agentId }).result;
  const third = await runtime.spawn("Explore", "Third.", { resume: agentId, allowedTools: ["Read"] }).result;
  expect([second, third].map(({ text, agentId: id, sessionId: of }) => [text, id, of])).toEqual([
    ["Two.", agentId, sessionId],
    ["Three.", agentId, sessionId],
  ]);
  expect(requests.map(({ messages }) => messages.length)).toEqual([3, 5]);
});

it("a child that is stopped before it has started says the same as one that runs [SDK-3]", async () => {
  await using sample = await createSampleRuntime([{ text: "Long.", failure: "stall", after: 0 }]);
  const early = await sample.runtime.spawn("Explore", "Go.").stop();
  const handle = sample.runtime.spawn("Explore", "Go.");
  for await (const { type } of handle.events) if (type === "turn-started") break;
  expect([early.reason, (await handle.stop()).reason]).toEqual(["stopped-by-program", "stopped-by-program"]);
});

it("a session that keeps no transcript writes nothing below the home folder, however long the results [SDK-1]", async () => {
  await using sample = await createSampleRuntime(
    [
      {
        calls: [
          { name: "Bash", input: { command: "seq 1 60000" } },
          { name: "Bash", input: { command: "echo done", run_in_background: true } },
        ],
      },
      "Done.",
    ],
    {
      transcripts: false,
      hooks: {
        UserPromptSubmit: [
          () => ({
            hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "x".repeat(20_000) },
          }),
        ],
      },
    },
  );
  const session = await sample.runtime.open({ allowedTools: ["Bash"] });
  expect((await session.run("Go.").result).status).toBe("completed");
  const texts = JSON.stringify(session.messages());
  const files = [...texts.matchAll(/\/[^\s"\\]*\/retinue-[0-9a-f-]{36}\/[\w.-]+\.(?:txt|output)/g)].map(
    ([file]) => file,
  );
  expect(files.length).toBeGreaterThanOrEqual(2);
  expect(files.every((file) => existsSync(file))).toBe(true);
  await session.close();
  expect(files.some((file) => existsSync(file))).toBe(false);
  expect(existsSync(sample.home) ? readdirSync(sample.home) : []).toEqual([]);
});

describe("what a program's own functions do wrong is a sentence, and never takes the run with it [SDK-1]", () => {
  it("answers the model where a tool returns a function", async () => {
    const tool = { name: "odd", description: "Odd.", inputSchema: { type: "object" }, call: () => () => 1 };
    await using sample = await createSampleRuntime([{ calls: [{ name: "odd", input: {} }] }, "Done."], {
      tools: [any(tool)],
    });
    const { status } = await sample.runtime.run("Go.", { allowedTools: ["odd"] }).result;
    expect(status).toBe("completed");
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain("returned a function");
  });

  it.each([
    ["throws", () => Promise.reject(new Error("no database")), "failed: no database."],
    ["returns no text", () => 5, "must return a string, but returned 5."],
  ])("names the agent whose prompt function %s", async (_, prompt, sentence) => {
    await using sample = await createSampleRuntime([], {
      agents: { clerk: { description: "Works.", prompt: any(prompt) } },
    });
    await expect(sample.runtime.spawn("clerk", "Go.").result).rejects.toThrow(
      `The prompt function of the agent "clerk" ${sentence}`,
    );
  });

  it("gives each hook a copy of the call, so that what it changes in it changes nothing [HKS-9]", async () => {
    await using sample = await createSampleRuntime(
      [{ calls: [{ name: "Read", input: { file_path: "a.txt" } }] }, "Done."],
      {
        hooks: { PreToolUse: [(input) => void Object.assign(input.tool_input, { file_path: "/etc/hosts" })] },
      },
    );
    await sample.workspace.write("a.txt", "apple");
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials).toEqual([]);
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain("apple");
  });
});

it("hooks and agents with the types of the Agent SDK are taken as they are [SDK-1]", async () => {
  const events: string[] = [];
  const foreign: Required<Pick<Options, "hooks" | "agents">> = {
    hooks: {
      PreToolUse: [
        {
          hooks: [
            async ({ hook_event_name: event }) => {
              events.push(event);
              return { async: true };
            },
          ],
        },
      ],
    },
    agents: { clerk: { description: "Works.", prompt: "Work." } },
  };
  const { hooks, agents } = foreign;
  await using sample = await createSampleRuntime(
    [{ calls: [{ name: "Glob", input: { pattern: "*" } }] }, "Done."],
    {
      hooks,
      agents,
    },
  );
  expect((await sample.runtime.run("Go.", { agent: "clerk" }).result).denials).toEqual([]);
  expect(events).toEqual(["PreToolUse"]);
});

describe("canUseTool adds rules as in the Agent SDK [SDK-1]", () => {
  const touch = (name: string) => ({ calls: [{ name: "Bash", input: { command: `touch ${name}` } }] });
  const update = (destination: string) => ({
    type: "addRules",
    behavior: "allow",
    destination,
    rules: [{ toolName: "Bash", ruleContent: "touch *" }],
  });

  it("is not asked again about what a rule of its answer allows", async () => {
    const asked: string[] = [];
    await using sample = await createSampleRuntime([touch("a"), touch("b"), "Done."], {
      canUseTool: async (_, input, { callId, toolUseID }) => {
        asked.push(String(input["command"]));
        expect(toolUseID).toBe(callId);
        return { behavior: "allow", updatedPermissions: [update("session")] };
      },
    });
    const { denials } = await sample.runtime.run("Go.").result;
    expect({ asked, denials }).toEqual({ asked: ["touch a"], denials: [] });
    expect(existsSync(sample.workspace.path("b"))).toBe(true);
  });

  it.each([
    ["a rule that is to be saved", [update("localSettings")], /only users can save rules/],
    [
      "a mode",
      [{ type: "setMode", mode: "bypassPermissions", destination: "session" }],
      /modes .* cannot be changed/,
    ],
    ["no list", "all", /must be a list, but is "all"/],
  ])("refuses the call with the reason for %s", async (_, updatedPermissions, reason) => {
    await using sample = await createSampleRuntime([touch("a"), "Done."], {
      canUseTool: async () => any({ behavior: "allow", updatedPermissions }),
    });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials[0]?.reason).toMatch(reason);
    expect(existsSync(sample.workspace.path("a"))).toBe(false);
  });
});

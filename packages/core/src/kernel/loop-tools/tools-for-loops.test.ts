import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test } from "vitest";
import { toAiSdkTools } from "./ai-sdk-tools.ts";
import { toAnthropicTools } from "./anthropic-tools.ts";
import type { LoopTool } from "./tools-for-loops.ts";

const work = { description: "look", prompt: "Look around." };

function pick(tools: readonly LoopTool[], name: string): LoopTool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) throw new Error(`no ${name}`);
  return tool;
}

describe("[SDK-2] the tools for a program's own loop", () => {
  test("are plain definitions, and a call runs a child and hands over its text and data", async () => {
    await using sample = await createSampleRuntime(["All quiet."]);
    const tools = await sample.runtime.loopTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(["Agent", "TaskOutput", "TaskStop"]);
    const agent = pick(tools, "Agent");
    expect(agent.inputSchema).toMatchObject({ type: "object", required: ["description", "prompt"] });
    expect(JSON.parse(JSON.stringify(agent.inputSchema))).toEqual(agent.inputSchema);
    const result = await agent.call(work, { callId: "c1" });
    expect(result).toMatchObject({ isError: false, data: { status: "completed", endStatus: "completed" } });
    expect(result.text).toContain("All quiet.");
  });

  test("a bad input and an unknown agent are results that say what is expected", async () => {
    await using sample = await createSampleRuntime([]);
    const agent = pick(await sample.runtime.loopTools(), "Agent");
    const bad = await agent.call({ prompt: 5 });
    expect(bad).toMatchObject({ isError: true });
    expect(bad.text).toMatch(/`description`.*`prompt`/);
    const unknown = await agent.call({ ...work, subagent_type: "Explor" });
    expect(unknown).toMatchObject({ isError: true });
    expect(unknown.text).toContain("Did you mean Explore?");
  });

  test("the signal of a call stops the child it waits for", async () => {
    await using sample = await createSampleRuntime([{ text: "Never", failure: "stall", after: 1 }]);
    await using session = await sample.runtime.open();
    const stop = new AbortController();
    const running = pick(session.loopTools(), "Agent").call(work, { signal: stop.signal });
    for await (const { event } of session.tasks.watch()) if (event.type === "model-streamed") break;
    stop.abort();
    expect(await running).toMatchObject({ isError: true });
    expect(session.tasks.list().map(({ status }) => status)).toEqual(["stopped"]);
  });

  test("a child in the background is read by TaskOutput, and the program takes its notice", async () => {
    await using sample = await createSampleRuntime(["Found late."]);
    await using session = await sample.runtime.open();
    const started = await pick(session.loopTools(), "Agent").call({ ...work, run_in_background: true });
    const [task] = session.tasks.list();
    expect(started.data).toMatchObject({ status: "async_launched", agentId: task?.id });
    const output = await pick(session.loopTools(), "TaskOutput").call({ task_id: task?.id });
    expect(output.text).toContain("Found late.");
    expect(JSON.stringify(session.takeNotices())).toContain("<task-notification>");
    expect(session.takeNotices()).toEqual([]);
  });

  test("hooks and rules of the session hold for calls from the program's loop too", async () => {
    const received: unknown[] = [];
    await using sample = await createSampleRuntime(["Never asked."], {
      hooks: [
        {
          event: "PreToolUse",
          run: async (input) => {
            received.push(input["tool_name"]);
            return { decision: "block", reason: "not today" };
          },
        },
      ],
    });
    const result = await pick(await sample.runtime.loopTools(), "Agent").call(work);
    expect(result).toMatchObject({ isError: true });
    expect(result.text).toContain("not today");
    expect(received).toEqual(["Agent"]);
    expect(sample.requests).toEqual([]);
    await using session = await sample.runtime.open({ disallowedTools: ["Agent"] });
    expect(session.loopTools().map(({ name }) => name)).not.toContain("Agent");
  });

  test("after the end of the runtime nothing can be started", async () => {
    const sample = await createSampleRuntime([]);
    const agent = pick(await sample.runtime.loopTools(), "Agent");
    await sample[Symbol.asyncDispose]();
    expect(await agent.call(work)).toMatchObject({ isError: true });
    await expect(sample.runtime.loopTools()).rejects.toThrow(/closed/);
  });
});

describe("[SDK-2] the adapters", () => {
  const started: string[] = [];
  const release = Promise.withResolvers<void>();
  const echo = (name: string): LoopTool => ({
    name,
    description: `Does ${name}.`,
    inputSchema: { type: "object", properties: { say: { type: "string" } } },
    async call(input, { callId } = {}) {
      started.push(`${name} ${callId}`);
      if (started.length === 2) release.resolve();
      await release.promise;
      return { text: JSON.stringify(input), isError: JSON.stringify(input).includes("fail") };
    },
  });

  test("for Anthropic answer all calls of a message together, the old name too, and leave others alone", async () => {
    const { definitions, answer } = toAnthropicTools([echo("Agent"), echo("TaskStop")]);
    expect(definitions[0]).toMatchObject({ name: "Agent", input_schema: { type: "object" } });
    const content = [
      { type: "text", text: "I ask two." },
      { type: "tool_use", id: "t1", name: "Agent", input: { say: "hi" } },
      { type: "tool_use", id: "t2", name: "Task", input: { say: "fail" } },
      { type: "tool_use", id: "t3", name: "get_weather", input: {} },
    ];
    expect(await answer(content)).toEqual([
      { type: "tool_result", tool_use_id: "t1", content: '{"say":"hi"}' },
      { type: "tool_result", tool_use_id: "t2", content: '{"say":"fail"}', is_error: true },
    ]);
    expect(started).toEqual(["Agent t1", "Agent t2"]);
  });

  test("for the AI SDK carry its schema mark, pass the call on, and reject with the text of an error", async () => {
    const { TaskStop } = toAiSdkTools([echo("TaskStop")]);
    expect(TaskStop?.inputSchema).toMatchObject({
      [Symbol.for("vercel.ai.schema")]: true,
      jsonSchema: { type: "object" },
    });
    expect(await TaskStop?.execute({ say: "hi" }, { toolCallId: "t9" })).toBe('{"say":"hi"}');
    expect(started.at(-1)).toBe("TaskStop t9");
    await expect(TaskStop?.execute({ say: "fail" })).rejects.toThrow('{"say":"fail"}');
  });
});

import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { barePorts } from "@retinue/testing/bare-ports.ts";
import type { Step } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Message, ToolResultBlock, UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { Model } from "../models/model.ts";
import { defineTool, type Tool } from "../tools/tool.ts";
import type { LoopInput, LoopPorts } from "./loop-ports.ts";
import { runAgentLoop } from "./run-agent-loop.ts";

interface Run {
  readonly events: readonly RunEvent[];
  readonly ending: RunEnding;
  readonly messages: readonly Message[];
}

const never = new AbortController().signal;

async function run(
  model: Model,
  tools: readonly Tool[] = [],
  more: {
    input?: Partial<LoopInput>;
    ports?: Partial<LoopPorts>;
    signal?: AbortSignal;
    watch?: (event: RunEvent) => void;
  } = {},
): Promise<Run> {
  const ports: LoopPorts = {
    ...barePorts({ model, tools }),
    ...more.ports,
  };
  const prompt: UserMessage = { role: "user", content: "Go." };
  const input: LoopInput = { system: ["Work."], history: [], prompt, maxTurns: 50, ...more.input };
  const events: RunEvent[] = [];
  for await (const event of runAgentLoop(input, ports, more.signal ?? never)) {
    events.push(event);
    more.watch?.(event);
  }
  const last = events.at(-1);
  if (last?.type !== "run-ended") throw new Error("the run did not end");
  const messages = events.flatMap((event) =>
    event.type === "user-added" || event.type === "assistant-answered" ? [event.message] : [],
  );
  return { events, ending: last.ending, messages };
}

function echo(name: string, more: Partial<Tool> = {}): Tool {
  return defineTool<{ text: string }>({
    name,
    description: "Says it again.",
    effect: "read",
    input: z.object({ text: z.string() }),
    call: async ({ text }) => ({ content: `${name}: ${text}`, data: { text } }),
    ...(more as object),
  });
}

function resultsOf(message: Message | undefined): ToolResultBlock[] {
  if (message === undefined || typeof message.content === "string") return [];
  return message.content.filter((block): block is ToolResultBlock => block.type === "tool_result");
}

describe("turns", () => {
  test("a text ends the run, with usage and turns counted", async () => {
    const { ending, messages } = await run(createScriptedModel(["Done."]));
    expect(ending).toMatchObject({
      status: "completed",
      reason: "end_turn",
      text: "Done.",
      totals: { turns: 1, toolUses: 0 },
    });
    expect(ending.totals.usage.outputTokens).toBeGreaterThan(0);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("calls are run, answered in order in one message, and the model continues", async () => {
    const model = createScriptedModel([
      {
        text: "Looking.",
        calls: [
          { name: "A", input: { text: "1" } },
          { name: "B", input: { text: "2" } },
        ],
      },
      "Both seen.",
    ]);
    const { messages, ending } = await run(model, [echo("A"), echo("B")]);
    expect(resultsOf(messages[2]).map(({ content }) => content)).toEqual(["A: 1", "B: 2"]);
    expect(ending).toMatchObject({ text: "Both seen.", totals: { turns: 2, toolUses: 2 } });
    model.finish();
  });

  test("[TRN-2] every message is handed out before the next step begins", async () => {
    const order: string[] = [];
    const tool = echo("A", { call: async () => ({ content: String(order.push("tool ran")) }) });
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "" } }] }, "End."]);
    await run(model, [tool], { watch: (event) => order.push(event.type) });
    const wanted = [
      "user-added",
      "assistant-answered",
      "tool ran",
      "user-added",
      "assistant-answered",
      "run-ended",
    ];
    expect(order.filter((entry) => wanted.includes(entry))).toEqual(wanted);
  });

  test("a paused turn is taken up again with the text so far", async () => {
    const model = createScriptedModel([{ text: "Half", stopReason: "pause_turn" }, "whole."]);
    const { ending } = await run(model);
    expect(ending.text).toBe("whole.");
    expect(model.requests[1]?.messages.at(-1)?.role).toBe("assistant");
  });

  test("messages from outside are read between turns and keep a run going that would end", async () => {
    const mail: UserMessage[] = [{ role: "user", content: "One more thing." }];
    const model = createScriptedModel(["First.", "Second."]);
    const { ending } = await run(model, [], {
      ports: { takeMessages: () => (model.requests.length > 0 ? mail.splice(0) : []) },
    });
    expect(ending.text).toBe("Second.");
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ content: "One more thing." });
  });
});

describe("[TLS-10] calls that cannot be run", () => {
  test("a tool that is not there is answered with what is available", async () => {
    const model = createScriptedModel([{ calls: [{ name: "Nope", input: {} }] }, "Sorry."]);
    const { messages } = await run(model, [echo("A"), echo("B")]);
    expect(resultsOf(messages[2])).toMatchObject([
      { is_error: true, content: 'There is no tool "Nope" here. Available: A, B.' },
    ]);
  });

  test("the model sees exactly the tools it has", async () => {
    const model = createScriptedModel(["Hi."]);
    await run(model, [echo("A")]);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["A"]);
    expect(model.requests[0]?.tools[0]?.inputSchema).toMatchObject({ type: "object", required: ["text"] });
  });

  test("a bad input is answered with the field and what was expected", async () => {
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: 7 } }] }, "Sorry."]);
    const { messages } = await run(model, [echo("A")]);
    expect(resultsOf(messages[2])[0]?.content).toMatch(/The input of A is not valid\. `text`/);
  });

  test("a refused call is answered, listed, and the run continues", async () => {
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }, "Without it."]);
    const { ending, messages } = await run(model, [echo("A")], {
      ports: { authorize: async () => ({ type: "denied", reason: "no" }) },
    });
    expect(ending).toMatchObject({ status: "completed", denials: [{ reason: "no", call: { name: "A" } }] });
    expect(resultsOf(messages[2])).toMatchObject([{ content: "no", is_error: true }]);
  });

  test("a guard that throws does not let through", async () => {
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }, "Well."]);
    const ran: string[] = [];
    const tool = echo("A", { call: async () => ({ content: String(ran.push("A")) }) });
    const { ending } = await run(model, [tool], {
      ports: { authorize: () => Promise.reject(new Error("broken")) },
    });
    expect(ran).toEqual([]);
    expect(ending.denials).toHaveLength(1);
  });

  test("an input that was changed on admission is checked again", async () => {
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }, "Ok."]);
    const { messages } = await run(model, [echo("A")], {
      ports: { authorize: async () => ({ type: "allowed", input: { text: 3 } }) },
    });
    expect(resultsOf(messages[2])[0]).toMatchObject({ is_error: true });
  });

  test("a tool that throws is an error for the model, not for the run", async () => {
    const tool = echo("A", { call: () => Promise.reject(new Error("disk on fire")) });
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }, "I see."]);
    const { ending, messages } = await run(model, [tool]);
    expect(ending.status).toBe("completed");
    expect(resultsOf(messages[2])).toMatchObject([{ content: "disk on fire", is_error: true }]);
  });

  test("a call cut off by the output limit is not run", async () => {
    const ran: string[] = [];
    const tool = echo("A", { call: async () => ({ content: String(ran.push("A")) }) });
    const call = { name: "A", input: { text: "x" } };
    const model = createScriptedModel([{ calls: [call, call], stopReason: "max_tokens" }, "Shorter."]);
    const { messages } = await run(model, [tool]);
    expect(ran).toHaveLength(1);
    expect(resultsOf(messages[2]).map(({ is_error }) => is_error ?? false)).toEqual([false, true]);
  });
});

describe("running together", () => {
  /** A tool whose calls wait for each other, so that they can only end when they run at the same time. */
  function meeting(name: string, size: number, more: Partial<Tool> = {}): Tool {
    let open = () => {};
    let here = 0;
    const all = new Promise<void>((resolve) => {
      open = resolve;
    });
    const call = async () => {
      here += 1;
      if (here === size) open();
      await all;
      return { content: "met" };
    };
    return echo(name, { call, ...more });
  }

  test("reading calls run at the same time", async () => {
    const call = { name: "A", input: { text: "" } };
    const model = createScriptedModel([{ calls: [call, call, call] }, "Done."]);
    const { ending } = await run(model, [meeting("A", 3)]);
    expect(ending.status).toBe("completed");
  });

  test("as many at the same time as the tool takes, where it says so", async () => {
    const calls = Array.from({ length: 25 }, () => ({ name: "A", input: { text: "" } }));
    const model = createScriptedModel([{ calls }, "Done."]);
    const { ending } = await run(model, [meeting("A", 25, { concurrency: 25 })]);
    expect(ending.status).toBe("completed");
  });

  test("ten at the same time otherwise: whenever one ends the next begins, and the answers keep their order", async () => {
    let running = 0;
    let most = 0;
    const tool = echo("A", {
      call: async (input) => {
        const { text } = input as { text: string };
        running += 1;
        most = Math.max(most, running);
        for (let wait = 0; wait <= Number(text) % 3; wait += 1) await new Promise(setImmediate);
        running -= 1;
        return { content: text };
      },
    });
    const texts = Array.from({ length: 25 }, (_, index) => String(index));
    const calls = texts.map((text) => ({ name: "A", input: { text } }));
    const { messages } = await run(createScriptedModel([{ calls }, "Done."]), [tool]);
    expect(most).toBe(10);
    expect(resultsOf(messages[2]).map(({ content }) => content)).toEqual(texts);
  });

  test("no more of them than the caller allows", async () => {
    let running = 0;
    let most = 0;
    const tool = echo("A", {
      call: async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return { content: "ok" };
      },
    });
    const calls = Array.from({ length: 12 }, () => ({ name: "A", input: { text: "" } }));
    await run(createScriptedModel([{ calls }, "Done."]), [tool], { ports: { concurrency: 3 } });
    expect(most).toBe(3);
  });

  test("others run one by one, in order", async () => {
    const log: string[] = [];
    const tool = echo("W", {
      effect: "edit",
      call: async (input) => {
        const { text } = input as { text: string };
        log.push(`start ${text}`);
        await Promise.resolve();
        log.push(`end ${text}`);
        return { content: "ok" };
      },
    });
    const calls = ["1", "2", "3"].map((text) => ({ name: "W", input: { text } }));
    await run(createScriptedModel([{ calls }, "Done."]), [tool]);
    expect(log).toEqual(["start 1", "end 1", "start 2", "end 2", "start 3", "end 3"]);
  });

  test("[PRM-1] a call that has to wait for another is decided when that one has ended", async () => {
    const log: string[] = [];
    const tool = echo("W", {
      effect: "edit",
      call: async (input) => ({ content: String(log.push(`ran ${(input as { text: string }).text}`)) }),
    });
    const calls = ["1", "2"].map((text) => ({ name: "W", input: { text } }));
    await run(createScriptedModel([{ calls }, "Done."]), [tool], {
      ports: {
        authorize: async ({ input }) => {
          log.push(`decided ${(input as { text: string }).text}`);
          return { type: "allowed", input };
        },
      },
    });
    expect(log).toEqual(["decided 1", "ran 1", "decided 2", "ran 2"]);
  });

  test("those that run together are decided in their order, before any of them runs", async () => {
    const log: string[] = [];
    const tool = echo("A", { call: async () => ({ content: String(log.push("ran")) }) });
    const calls = ["1", "2"].map((text) => ({ name: "A", input: { text } }));
    await run(createScriptedModel([{ calls }, "Done."]), [tool], {
      ports: {
        authorize: async ({ input }) => {
          log.push(`asked ${(input as { text: string }).text}`);
          return { type: "allowed", input };
        },
      },
    });
    expect(log).toEqual(["asked 1", "asked 2", "ran", "ran"]);
  });
});

describe("endings", () => {
  test("the turn limit ends as partial, with what there is", async () => {
    const loop = { text: "Again.", calls: [{ name: "A", input: { text: "" } }], times: "any" as const };
    const { ending } = await run(createScriptedModel([loop]), [echo("A")], { input: { maxTurns: 3 } });
    expect(ending).toMatchObject({
      status: "partial",
      reason: "max_turns",
      text: "Again.",
      totals: { turns: 3 },
    });
  });

  test("where it is asked for, a last turn without tools hands in what there is", async () => {
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "" } }] }, "So far: half."]);
    const { ending } = await run(model, [echo("A")], { input: { maxTurns: 1, lastTurn: true } });
    expect(ending).toMatchObject({ status: "partial", reason: "max_turns", text: "So far: half." });
    expect(model.requests[1]?.toolChoice).toBe("none");
  });

  test("[LIM-3, AGT-5] a limit met by the model ends as partial, with what the agent left", async () => {
    const limited: Model = {
      ...createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }]),
      async *stream(request, options) {
        if (request.messages.length > 1)
          throw new RetinueError("max_budget", "Budget limit reached: 0 left.");
        yield* createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }]).stream(
          request,
          options,
        );
      },
    };
    const { ending } = await run(limited, [echo("A")]);
    expect(ending).toMatchObject({
      status: "partial",
      reason: "max_budget",
      error: "Budget limit reached: 0 left.",
      text: "(It ended before it wrote a result. It had called A.)\n\nThe last result it saw:\nA: x",
    });
  });

  test("[AGT-5] what it left is reported also where its caller adds to the history meanwhile", async () => {
    const history: Message[] = [];
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "x" } }] }]);
    const { ending } = await run(model, [echo("A")], {
      input: { history, maxTurns: 1 },
      watch(event) {
        if (event.type === "user-added" || event.type === "assistant-answered") history.push(event.message);
      },
    });
    expect(ending.text).toContain("It had called A");
  });

  test("[LIM-3] calls beyond the limit are answered without being run, and the agent hands in", async () => {
    const calls = ["1", "2", "3"].map((text) => ({ name: "A", input: { text } }));
    const model = createScriptedModel([{ calls }, "What I have."]);
    const limit = { reason: "max_tool_calls", error: "The limit of 2 tool calls was reached." } as const;
    const { ending, messages } = await run(model, [echo("A")], {
      ports: { limits: { takeCalls: () => ({ granted: 2, limit }), shortened: () => undefined } },
    });
    expect(resultsOf(messages[2]).map(({ content }) => content)).toEqual([
      "A: 1",
      "A: 2",
      "This call was not run. The limit of 2 tool calls was reached.",
    ]);
    expect(model.requests[1]?.toolChoice).toBe("none");
    expect(ending).toMatchObject({ status: "partial", reason: "max_tool_calls", text: "What I have." });
  });

  test("[LIM-2] calls that are cut off six times in a row end the run, wherever they are cut", async () => {
    const steps = [1, 2, 3, 4, 5, 6].map((length) => ({
      calls: [{ name: "A", input: { text: "x".repeat(length) } }],
      stopReason: "max_tokens" as const,
    }));
    const model = createScriptedModel([...steps, "It does not fit."]);
    const { ending, messages } = await run(model, [echo("A")]);
    expect(ending).toMatchObject({
      status: "partial",
      reason: "max_tokens",
      error: "6 answers in a row were cut off by the output limit in the middle of a call.",
      text: "It does not fit.",
    });
    for (const at of [2, 4, 6, 8, 10, 12])
      expect(resultsOf(messages[at])[0]?.content).toMatch(/was cut off.*shorter input\.$/);
  });

  test("an answer that a limit has made too short is the limit's end, not the model's", async () => {
    const limit = { reason: "max_budget", error: "Budget limit reached: 0.01 left." } as const;
    const model = createScriptedModel([{ text: "As far as", stopReason: "max_tokens" }]);
    const { ending } = await run(model, [], {
      ports: { limits: { takeCalls: (granted) => ({ granted }), shortened: () => limit } },
    });
    expect(ending).toMatchObject({ status: "partial", ...limit, text: "As far as" });
  });

  test("a last turn that fails takes nothing away from the text before", async () => {
    const first = { text: "Half.", calls: [{ name: "A", input: { text: "x" } }] };
    const model = createScriptedModel([first, { failure: "server-error" }]);
    const { ending } = await run(model, [echo("A")], { input: { maxTurns: 1, lastTurn: true } });
    expect(ending).toMatchObject({ status: "partial", reason: "max_turns", text: "Half." });
  });

  test("[LIM-6] a call that brings nothing new is pointed out after 3 times, and ends the run at the limit", async () => {
    const again = { calls: [{ name: "A", input: { text: "x" } }], times: 6 };
    const model = createScriptedModel([again, "I was going in a circle."]);
    const limits = {
      takeCalls: (granted: number) => ({ granted }),
      shortened: () => undefined,
      maxRepeats: 6,
    };
    const { ending, events, messages } = await run(model, [echo("A")], { ports: { limits } });
    expect(events.flatMap((event) => (event.type === "loop-noticed" ? [event.times] : []))).toEqual([
      3, 4, 5, 6,
    ]);
    const results = messages.flatMap(resultsOf).map(({ content }) => String(content));
    expect(results.map((text) => text.includes("times in a row"))).toEqual([
      false,
      false,
      true,
      true,
      true,
      true,
    ]);
    expect(ending).toMatchObject({ status: "partial", reason: "loop", text: "I was going in a circle." });
    expect(ending.totals.turns).toBe(7);
  });

  test("[LIM-6] the limit is 30 by default", async () => {
    const again = { calls: [{ name: "A", input: { text: "x" } }], times: 30 };
    const { ending } = await run(createScriptedModel([again, "Enough."]), [echo("A")], {
      input: { maxTurns: 100 },
    });
    expect(ending).toMatchObject({
      reason: "loop",
      error: "The agent made the same call 30 times in a row, with the same result.",
    });
  });

  test.each<[string, Partial<Tool>, boolean, boolean]>([
    ["a command that answers the same", { effect: "execute" }, false, false],
    ["a command that fails the same way", { effect: "execute" }, true, true],
    ["an MCP tool that answers the same", { effect: "read", origin: "mcp" }, false, false],
    ["an MCP tool that fails the same way", { effect: "read", origin: "mcp" }, true, true],
    ["a tool whose repetition does something", { effect: "edit" }, false, false],
  ])("[LIM-6] %s is polling or work and ends nothing", async (_what, more, isError, isReported) => {
    const tool = { ...echo("Poll", { call: async () => ({ content: "pending", isError }) }), ...more };
    const model = createScriptedModel([
      { calls: [{ name: "Poll", input: { text: "x" } }], times: 40 },
      "Ready.",
    ]);
    const { ending, messages } = await run(model, [tool], { input: { maxTurns: 100 } });
    expect(ending).toMatchObject({ status: "completed", text: "Ready." });
    const results = messages.flatMap(resultsOf).map(({ content }) => String(content));
    expect(results.some((text) => text.includes("in a row"))).toBe(isReported);
    expect(results.join()).not.toContain("the run ends");
  });

  test("[LIM-6] a command that was refused is not polling: it counts", async () => {
    const model = createScriptedModel([
      { calls: [{ name: "Run", input: { text: "x" } }], times: 30 },
      "Stop.",
    ]);
    const { ending } = await run(model, [echo("Run", { effect: "execute" })], {
      input: { maxTurns: 100 },
      ports: { authorize: async () => ({ type: "denied", reason: "no" }) },
    });
    expect(ending).toMatchObject({ status: "partial", reason: "loop", text: "Stop." });
  });

  test("[LIM-6] asking again for something that still continues is no loop", async () => {
    const poll = echo("Poll", { call: async () => ({ content: "running", data: 1 }), isPending: () => true });
    const model = createScriptedModel([
      { calls: [{ name: "Poll", input: { text: "x" } }], times: 9 },
      "It ended.",
    ]);
    const { ending } = await run(model, [poll]);
    expect(ending).toMatchObject({ status: "completed", text: "It ended." });
  });

  test("[LIM-3] a call that takes too long is an error for the agent, which continues", async () => {
    const late = new AbortController();
    const slow = echo("Slow", {
      call: (_input, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          late.abort(
            new RetinueError("tool-timeout", "Slow did not end within 2 s.", { advice: "Do less." }),
          );
        }),
    });
    let isReleased = false;
    const { ending, messages } = await run(
      createScriptedModel([{ calls: [{ name: "Slow", input: { text: "x" } }] }, "Done."]),
      [slow],
      {
        ports: {
          limits: {
            takeCalls: (granted) => ({ granted }),
            shortened: () => undefined,
            limitCall: () => ({
              signal: late.signal,
              [Symbol.dispose]() {
                isReleased = true;
              },
            }),
          },
        },
      },
    );
    expect(resultsOf(messages[2])).toMatchObject([
      { content: "Slow did not end within 2 s.\nDo less.", is_error: true },
    ]);
    expect(ending).toMatchObject({ status: "completed", text: "Done." });
    expect(isReleased).toBe(true);
  });

  test("an agent that ends without a word is asked once", async () => {
    const model = createScriptedModel([{ blocks: [] }, "Here it is."]);
    expect((await run(model, [], { input: { askWhenSilent: true } })).ending.text).toBe("Here it is.");
  });

  test("[AGT-5] one that stays silent when it is asked is no success, and leaves what it did", async () => {
    const silent = (...steps: readonly Step[]) =>
      run(createScriptedModel([...steps, { blocks: [] }, { blocks: [] }]), [echo("A")], {
        input: { askWhenSilent: true },
      });
    const call = { name: "A", input: { text: "x" } };
    const none = { status: "partial", reason: "no_result", error: expect.stringContaining("asked for") };
    expect((await silent()).ending).toMatchObject({ ...none, text: "" });
    expect((await silent({ text: "Half.", calls: [call] })).ending).toMatchObject({ ...none, text: "Half." });
    expect((await silent({ calls: [call] })).ending).toMatchObject({
      ...none,
      text: "(It ended before it wrote a result. It had called A.)\n\nThe last result it saw:\nA: x",
    });
  });

  test.each([
    ["refusal", "failed", "refusal"],
    ["max_tokens", "partial", "max_tokens"],
    ["model_context_window_exceeded", "partial", "context_full"],
    ["stop_sequence", "completed", "stop_sequence"],
  ] as const)("a stop by %s ends as %s", async (stopReason, status, reason) => {
    expect((await run(createScriptedModel([{ text: "x", stopReason }]))).ending).toMatchObject({
      status,
      reason,
    });
  });

  test("a model that fails ends the run as failed, with the code", async () => {
    const { ending } = await run(createScriptedModel([{ failure: "unauthorized" }]));
    expect(ending).toMatchObject({ status: "failed", reason: "unauthorized" });
    expect(ending.error).toBeDefined();
  });

  test("the reminder is in every user message, for good", async () => {
    const model = createScriptedModel([{ calls: [{ name: "A", input: { text: "" } }] }, "Done."]);
    const { messages } = await run(model, [echo("A")], { input: { reminder: "Do not write." } });
    for (const message of messages.filter(({ role }) => role === "user")) {
      expect(JSON.stringify(message.content)).toContain("Do not write.");
    }
    expect(model.requests[1]?.messages[0]).toBe(model.requests[0]?.messages[0]);
  });
});

describe("stopping", () => {
  test("before the start nothing is asked", async () => {
    const model = createScriptedModel(["Hi."]);
    const { ending } = await run(model, [], { signal: AbortSignal.abort() });
    expect(ending).toMatchObject({ status: "stopped", reason: "aborted" });
    expect(model.requests).toHaveLength(0);
  });

  test("in the middle of an answer the answer is dropped and the conversation can continue", async () => {
    const controller = new AbortController();
    const { ending, messages } = await run(
      createScriptedModel([{ text: "A long answer.", failure: "stall", after: 1 }]),
      [],
      {
        signal: controller.signal,
        watch: (event) =>
          event.type === "model-streamed" && event.event.type === "text-delta" && controller.abort(),
      },
    );
    expect(ending.status).toBe("stopped");
    expect(messages.map(({ role }) => role)).toEqual(["user"]);
  });

  test("in the middle of calls every call is answered", async () => {
    const controller = new AbortController();
    const slow = echo("S", {
      effect: "edit",
      call: (_input, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
          controller.abort();
        }),
    });
    const calls = ["1", "2"].map((text) => ({ name: "S", input: { text } }));
    const { ending, messages } = await run(createScriptedModel([{ calls }]), [slow], {
      signal: controller.signal,
    });
    expect(ending.status).toBe("stopped");
    expect(resultsOf(messages[2])).toHaveLength(2);
    expect(resultsOf(messages[2]).every(({ is_error }) => is_error)).toBe(true);
  });

  test("[TRN-3] what a call reports itself about being broken off is kept, such as the agent it had started", async () => {
    const controller = new AbortController();
    const reporting = echo("S", {
      call: async () => {
        controller.abort();
        return { content: "Resume the agent a1.", isError: true };
      },
    });
    const model = createScriptedModel([{ calls: [{ name: "S", input: { text: "" } }] }]);
    const { messages } = await run(model, [reporting], { signal: controller.signal });
    expect(resultsOf(messages[2])).toMatchObject([
      {
        is_error: true,
        content: expect.stringMatching(/^Resume the agent a1\.\n\nThis call was interrupted/),
      },
    ]);
  });
});

describe("listeners to what happened", () => {
  test("see each call that ran, with its result, and may add to it", async () => {
    const model = createScriptedModel([
      {
        calls: [
          { name: "Say", input: { text: "one" } },
          { name: "Absent", input: {} },
        ],
      },
      "Done.",
    ]);
    const received: unknown[] = [];
    const { messages } = await run(model, [echo("Say")], {
      ports: {
        afterCall: async ({ tool, input }, outcome, { durationMs }) => {
          received.push([tool.name, input, outcome.content, durationMs > 0]);
          return { ...outcome, content: `${outcome.content} (noted)` };
        },
      },
    });
    expect(received).toEqual([["Say", { text: "one" }, "Say: one", true]]);
    expect(resultsOf(messages[2])[0]?.content).toBe("Say: one (noted)");
  });

  test("cannot take a result away by failing", async () => {
    const model = createScriptedModel([{ calls: [{ name: "Say", input: { text: "one" } }] }, "Done."]);
    const { messages, ending } = await run(model, [echo("Say")], {
      ports: { afterCall: () => Promise.reject(new Error("broken")) },
    });
    expect(resultsOf(messages[2])[0]?.content).toBe("Say: one");
    expect(ending.status).toBe("completed");
  });

  test("can make an agent continue that wanted to end", async () => {
    const model = createScriptedModel(["First.", "Second."]);
    const texts: string[] = [];
    const { ending, events } = await run(model, [], {
      ports: {
        beforeEnd: async (text) => {
          texts.push(text);
          return texts.length === 1 ? { role: "user", content: "The tests fail." } : undefined;
        },
      },
    });
    expect(texts).toEqual(["First.", "Second."]);
    expect(ending).toMatchObject({ status: "completed", text: "Second." });
    const added = events.flatMap((event) => (event.type === "user-added" ? [event.origin] : []));
    expect(added).toEqual(["prompt", "system"]);
  });

  test("do not hold up an end that is none of the agent's own", async () => {
    const model = createScriptedModel([{ text: "No.", stopReason: "refusal" }]);
    const beforeEnd = () => Promise.reject(new Error("must not be asked"));
    const { ending } = await run(model, [], { ports: { beforeEnd } });
    expect(ending).toMatchObject({ status: "failed", reason: "refusal" });
  });
});

describe("nothing happens of which no record would be left [TRN-2]", () => {
  const call = (name: string) => ({ calls: [{ name, input: { text: "x" } }] });

  test("a call that does something waits until its record is kept, one that only looks does not", async () => {
    const order: string[] = [];
    const spy = (name: string, effect: Tool["effect"]) =>
      echo(name, {
        effect,
        call: async () => {
          order.push(name);
          return { content: "ok" };
        },
      });
    const model = createScriptedModel([call("Look"), call("Act"), { text: "Done." }]);
    const commit = async () => {
      order.push("commit begins");
      await new Promise((resolve) => setImmediate(resolve));
      order.push("commit ends");
    };
    await run(model, [spy("Look", "read"), spy("Act", "execute")], { ports: { commit } });
    expect(order).toEqual(["Look", "commit begins", "commit ends", "Act"]);
  });

  test("a call that cannot be recorded is not run, and its answer says why", async () => {
    let hasRun = false;
    const act = echo("Act", {
      effect: "execute",
      call: async () => {
        hasRun = true;
        return { content: "ok" };
      },
    });
    const model = createScriptedModel([call("Act"), { text: "Done." }]);
    const commit = () => Promise.reject(new Error("i/o error"));
    const { messages } = await run(model, [act], { ports: { commit } });
    expect(hasRun).toBe(false);
    expect(JSON.stringify(messages)).toContain(
      "This call was not run, because it could not be recorded: i/o error",
    );
  });
});

describe("calls that may run together are decided together [HKS-9]", () => {
  test("what comes before the decision of each runs at the same time, and the decisions keep their order", async () => {
    const order: string[] = [];
    const waiting = new Map<string, () => void>();
    const model = createScriptedModel([
      { calls: ["a", "b", "c"].map((text) => ({ name: "Look", input: { text } })) },
      { text: "Done." },
    ]);
    const authorize: LoopPorts["authorize"] = async ({ input }, { turn }) => {
      const { text } = input as { text: string };
      order.push(`hook ${text}`);
      // The hooks end in the opposite order, and only when all have started.
      await new Promise<void>((resolve) => {
        waiting.set(text, resolve);
        if (waiting.size === 3) for (const end of [...waiting.values()].reverse()) end();
      });
      await turn?.();
      order.push(`decided ${text}`);
      return { type: "allowed", input };
    };
    await run(model, [echo("Look")], { ports: { authorize } });
    expect(order).toEqual(["hook a", "hook b", "hook c", "decided a", "decided b", "decided c"]);
  });

  test("one that is refused holds up none of the others", async () => {
    const model = createScriptedModel([
      { calls: ["a", "b"].map((text) => ({ name: "Look", input: { text } })) },
      { text: "Done." },
    ]);
    const authorize: LoopPorts["authorize"] = async ({ input }, { turn }) => {
      await turn?.();
      if ((input as { text: string }).text === "a") throw new Error("the guard failed");
      return { type: "allowed", input };
    };
    const { messages } = await run(model, [echo("Look")], { ports: { authorize } });
    expect(JSON.stringify(messages)).toContain("the guard failed");
    expect(JSON.stringify(messages)).toContain("Look: b");
  });
});

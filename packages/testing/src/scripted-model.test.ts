import { textOf } from "@retinue/core/conversation/message.ts";
import type { ModelEvent, ModelRequest } from "@retinue/core/models/model.ts";
import { describe, expect, test } from "vitest";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";

describe("[MDL-5] the scripted model says what its steps say", () => {
  test("steps are taken in order", async () => {
    const model = createScriptedModel(["one", { text: "two" }, () => "three"]);
    expect([await say(model), await say(model), await say(model)]).toEqual(["one", "two", "three"]);
    expect(() => model.finish()).not.toThrow();
  });

  test("a step that matches goes before the steps in order, so that several agents can share one model", async () => {
    const model = createScriptedModel([
      "the main agent begins",
      { match: "You review", text: "the reviewer" },
      { match: ({ system }: ModelRequest) => system.includes("You test"), text: "the tester" },
      "the main agent ends",
    ]);
    const main = { system: ["You lead"] };
    const answers = [
      await say(model, { system: ["You test"] }),
      await say(model, main),
      await say(model, { system: ["You review"] }),
      await say(model, main),
    ];
    expect(answers).toEqual(["the tester", "the main agent begins", "the reviewer", "the main agent ends"]);
  });

  test("text is looked for in the last user message too, results of tools included", async () => {
    const model = createScriptedModel([{ match: "42 lines", text: "counted" }]);
    const result = { type: "tool_result" as const, tool_use_id: "x", content: "42 lines" };
    expect(await say(model, { messages: [{ role: "user", content: [result] }] })).toBe("counted");
  });

  test("a function sees the request and may make any answer", async () => {
    const model = createScriptedModel([
      ({ messages }) => ({ calls: [{ name: "Read", input: { count: messages.length } }] }),
    ]);
    const end = (await events(model)).at(-1);
    expect(end).toMatchObject({
      stopReason: "tool_use",
      message: { content: [{ type: "tool_use", name: "Read", input: { count: 1 } }] },
    });
  });

  test("the same steps and requests make the same events", async () => {
    const run = () =>
      events(createScriptedModel([{ thinking: "hm", text: "so", calls: [{ name: "Read" }] }]));
    expect(await run()).toEqual(await run());
  });

  test("ids differ between turns, also when a second model continues with the conversation", async () => {
    const first = (await events(createScriptedModel(["a"]))).at(-1);
    const messages = [
      ...request().messages,
      { role: "assistant" as const, content: [] },
      ...request().messages,
    ];
    const second = (await events(createScriptedModel(["a"]), { messages })).at(-1);
    expect(first?.type === "message-ended" && first.id).not.toBe(
      second?.type === "message-ended" && second.id,
    );
  });

  test("usage is estimated and may be set instead", async () => {
    const model = createScriptedModel([
      "four words are here",
      { text: "x", usage: { inputTokens: 190_000 } },
    ]);
    expect((await events(model)).at(-1)).toMatchObject({ usage: { outputTokens: 5, cacheReadTokens: 0 } });
    expect((await events(model)).at(-1)).toMatchObject({ usage: { inputTokens: 190_000, outputTokens: 1 } });
  });

  test("what was asked is kept as it was, also when the caller's list grows", async () => {
    const model = createScriptedModel(["a"]);
    const messages: ModelRequest["messages"][number][] = [{ role: "user", content: "hello" }];
    await events(model, { messages });
    messages.push({ role: "user", content: "later" });
    expect(model.requests[0]?.messages).toEqual([{ role: "user", content: "hello" }]);
  });
});

describe("[MDL-5] the scripted model notices when a test and its script disagree", () => {
  test("steps that were not asked for are listed", async () => {
    const model = createScriptedModel([
      "used",
      { match: "reviewer", text: "unused words" },
      { calls: [{ name: "Bash" }], times: 3 },
      { text: "as often as you like", times: "any" },
    ]);
    await say(model);
    expect(() => model.finish()).toThrow(
      'Steps that were never asked for:\n  step 2: match "reviewer", text "unused words"\n  step 3: calls Bash (3 times)',
    );
  });

  test("a request without a step is a script-mismatch that says what was asked, and finish repeats it", async () => {
    const model = createScriptedModel([{ match: "somebody else", text: "no" }]);
    const asked = events(model, { system: ["You lead"], messages: [{ role: "user", content: "Go." }] });
    await expect(asked).rejects.toMatchObject({
      code: "script-mismatch",
      message: expect.stringContaining('last "Go.", system "You lead"'),
      mayPass: false,
    });
    expect(() => model.finish()).toThrow("Requests that found no step:");
  });

  test("a step may serve several times", async () => {
    const model = createScriptedModel([{ text: "again", times: 2 }]);
    await say(model);
    expect(() => model.finish()).toThrow("step 1");
    await say(model);
    expect(() => model.finish()).not.toThrow();
    await expect(say(model)).rejects.toThrow("all 1 steps are used");
  });
});

describe("[MDL-5] the scripted model fails on demand", () => {
  test("as many deltas as requested come before the error", async () => {
    const model = createScriptedModel([{ text: "abcdefghij", failure: "cut", after: 2 }], { deltaSize: 3 });
    const seen: ModelEvent[] = [];
    await expect(collect(model, seen)).rejects.toMatchObject({ code: "stream-cut" });
    expect(seen.flatMap((event) => (event.type === "text-delta" ? [event.text] : []))).toEqual([
      "abc",
      "def",
    ]);
  });

  test("a stall waits for the signal and ends with its reason", async () => {
    const model = createScriptedModel([{ failure: "stall" }]);
    const controller = new AbortController();
    const waiting = collect(model, [], controller.signal);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  test("a delay between deltas ends with the signal", async () => {
    const model = createScriptedModel([{ text: "slow", delayMs: 600_000 }]);
    const controller = new AbortController();
    const waiting = collect(model, [], controller.signal);
    setImmediate(() => controller.abort());
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  });
});

function request(): ModelRequest {
  return { system: ["You help"], tools: [], messages: [{ role: "user", content: "hello" }] };
}

async function collect(
  model: ScriptedModel,
  seen: ModelEvent[],
  signal = new AbortController().signal,
  asked: Partial<ModelRequest> = {},
): Promise<readonly ModelEvent[]> {
  for await (const event of model.stream({ ...request(), ...asked }, { signal })) seen.push(event);
  return seen;
}

async function events(model: ScriptedModel, asked: Partial<ModelRequest> = {}) {
  return collect(model, [], undefined, asked);
}

async function say(model: ScriptedModel, asked: Partial<ModelRequest> = {}): Promise<string> {
  const end = (await events(model, asked)).at(-1);
  return end?.type === "message-ended" ? textOf(end.message) : "";
}

import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { describe, expect, test } from "vitest";
import type { ModelEvent } from "../../conversation/message.ts";
import type { Model, ModelRequest } from "../../models/model.ts";
import { ModelError, type ModelErrorCode } from "../../models/model-error.ts";
import { createLiveModel } from "./create-live-model.ts";

const request: ModelRequest = { system: [], tools: [], messages: [] };
const text: ModelEvent = { type: "text-delta", index: 0, text: "a" };
const failed = (attempt: number, code: string): ModelEvent => ({
  type: "attempt-failed",
  ...{ attempt, code, maxAttempts: 11, delayMs: 0, message: code },
});
const endedBy = (model: string): ModelEvent => ({
  type: "message-ended",
  ...{ id: "m", model, stopReason: "end_turn" },
  message: { role: "assistant", content: [] },
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
});
const error = (code: ModelErrorCode): ModelError => new ModelError(code, `it was ${code}`);

/** A model that says the same at each request; without steps it answers. */
function playing(id: string, steps: readonly (ModelEvent | Error)[] = [endedBy(id)]) {
  const requests: ModelRequest[] = [];
  const model: Model = {
    facts: { id, provider: "p", contextWindow: 1, maxOutputTokens: 1, supportsServerTools: false },
    async *stream(asked) {
      requests.push(asked);
      for (const step of steps) {
        if (step instanceof Error) throw step;
        yield step;
      }
    },
  };
  return { model, requests };
}

function setUp(steps: readonly (ModelEvent | Error)[], names = ["b"], others = [playing("b").model]) {
  const first = playing("a", steps);
  const live = createLiveModel(first.model, {
    fallbacks: names,
    async find(name) {
      const found = others.find(({ facts }) => facts.id === name);
      if (found === undefined) throw new RetinueError("model-unserved", "no provider is configured for it.");
      return found;
    },
  });
  const collect = async (): Promise<readonly ModelEvent[]> => {
    const events: ModelEvent[] = [];
    const { signal } = new AbortController();
    for await (const event of live.stream(request, { signal })) events.push(event);
    return events;
  };
  return { live, first, collect };
}

describe("a fallback model [MDL-8]", () => {
  test.each<ModelErrorCode>([
    "overloaded",
    "server-error",
    "connection-failed",
    "stalled",
    "not-found",
  ])("answers after %s", async (code) => {
    expect(await setUp([error(code)]).collect()).toEqual([
      { type: "fell-back", from: "a", to: "b", code },
      endedBy("b"),
    ]);
  });

  test.each<ModelErrorCode>([
    "rate-limited",
    "context-too-long",
    "invalid-request",
    "unauthorized",
  ])("does not answer after %s", async (code) => {
    await expect(setUp([error(code)]).collect()).rejects.toMatchObject({ code });
  });

  test("answers where a provider refuses a retired model as a wrong request", async () => {
    const answer = {
      status: 400,
      type: "model_decommissioned",
      message: "The model `a` has been decommissioned.",
    };
    const { collect } = setUp([new ModelError("invalid-request", answer.message, { answer })]);
    expect((await collect()).map(({ type }) => type)).toEqual(["fell-back", "message-ended"]);
  });

  test("does not wait for all retries: the third failure is enough, unless it is a rate limit", async () => {
    const overloaded = [1, 2, 3].map((attempt) => failed(attempt, "overloaded"));
    const seen = await setUp([...overloaded, endedBy("a")]).collect();
    expect(seen).toEqual([
      ...overloaded.slice(0, 2),
      { type: "fell-back", from: "a", to: "b", code: "overloaded" },
      endedBy("b"),
    ]);
    const limited = [failed(3, "rate-limited"), endedBy("a")];
    expect(await setUp(limited).collect()).toEqual(limited);
  });

  test("answers anew where the first had already sent text, and is asked only once a message has not ended", async () => {
    const begun = await setUp([text, error("stream-cut")]).collect();
    expect(begun.map(({ type }) => type)).toEqual(["text-delta", "fell-back", "message-ended"]);
    await expect(setUp([endedBy("a"), error("stream-cut")]).collect()).rejects.toMatchObject({
      code: "stream-cut",
    });
  });

  test("stays until the chosen model is asked again", async () => {
    const { live, first, collect } = setUp([error("overloaded")]);
    await collect();
    expect(await collect()).toEqual([endedBy("b")]);
    expect([first.requests.length, live.facts.id]).toEqual([1, "b"]);
    live.restart();
    expect((await collect())[0]).toMatchObject({ type: "fell-back", from: "a", to: "b" });
    expect(first.requests).toHaveLength(2);
  });

  test("is the next of the list that is another model and can be used", async () => {
    const others = [playing("a").model, playing("c", [error("not-found")]).model, playing("d").model];
    const seen = await setUp([error("overloaded")], ["a", "gone", "c", "d"], others).collect();
    expect(seen).toEqual([
      { type: "fell-back", from: "a", to: "c", code: "overloaded" },
      { type: "fell-back", from: "c", to: "d", code: "not-found" },
      endedBy("d"),
    ]);
  });

  test("that does not exist leaves the error as it was, and all retries to the model", async () => {
    await expect(setUp([error("overloaded")], ["gone"], []).collect()).rejects.toMatchObject({
      code: "overloaded",
    });
    const steps = [failed(3, "overloaded"), failed(4, "overloaded"), endedBy("a")];
    expect(await setUp(steps, ["gone"], []).collect()).toEqual(steps);
  });
});

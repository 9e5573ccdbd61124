import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";
import { createTextModel, type TextMessage } from "./create-text-model.ts";
import { ModelError } from "./model-error.ts";

describe("a model made of one function [MDL-3]", () => {
  it("answers with a text, and gets system prompt and conversation as text", async () => {
    const received: (readonly TextMessage[])[] = [];
    const model = createTextModel((messages) => {
      received.push(messages);
      return `You said: ${messages.at(-1)?.text}`;
    });
    await using sample = await createSampleRuntime([], { model, systemPrompt: "Echo." });
    await using session = await sample.runtime.open();
    expect(await session.run("one").text).toBe("You said: one");
    expect(await session.run("two").text).toBe("You said: two");
    expect(received[1]?.filter(({ role }) => role !== "system").map(({ text }) => text)).toEqual([
      "one",
      "You said: one",
      "two",
    ]);
    expect(received[0]?.[0]).toMatchObject({ role: "system", text: expect.stringContaining("Echo.") });
  });

  it("streams pieces as they come", async () => {
    const model = createTextModel(async function* () {
      yield "Hel";
      yield "lo.";
    });
    await using sample = await createSampleRuntime([], { model });
    const pieces: string[] = [];
    for await (const piece of sample.runtime.run("Go.").textStream) pieces.push(piece);
    expect(pieces).toEqual(["Hel", "lo."]);
  });

  it("is asked again after an error that may pass, and not after another [MDL-6]", async () => {
    const thrown = [
      new ModelError("overloaded", "Busy.", { retryAfterMs: 1 }),
      new ModelError("stream-cut", "Cut."),
    ];
    const model = createTextModel(() => {
      const error = thrown.shift();
      if (error !== undefined) throw error;
      return "Here.";
    });
    await using sample = await createSampleRuntime([], { model });
    const run = sample.runtime.run("Go.");
    const retried: string[] = [];
    for await (const event of run.events) if (event.type === "model-retried") retried.push(event.code);
    expect(await run.text).toBe("Here.");
    expect(retried).toEqual(["overloaded", "stream-cut"]);
    thrown.push(new ModelError("unauthorized", "No."));
    await expect(sample.runtime.run("Go.").text).rejects.toMatchObject({ code: "unauthorized" });
    thrown.push(new ModelError("overloaded", "Busy."));
    const env = { CLAUDE_CODE_MAX_RETRIES: "0" };
    await using strict = await createSampleRuntime([], { model, env });
    await expect(strict.runtime.run("Go.").text).rejects.toMatchObject({ code: "overloaded" });
  });

  it("ends the run with what it throws, and with a sentence where it answers with something else", async () => {
    const broken = createTextModel(() => {
      throw new Error("No paper left.");
    });
    await using sample = await createSampleRuntime([], { model: broken });
    await expect(sample.runtime.run("Go.").text).rejects.toThrow("No paper left.");
    const odd = createTextModel(() => 7 as never);
    await expect(sample.runtime.run("Go.", { model: odd }).text).rejects.toThrow(
      /createTextModel\(\) must answer/,
    );
  });
});

it("a stream without its last event is named as that [MDL-3]", async () => {
  const facts = {
    id: "own",
    provider: "program",
    contextWindow: 200_000,
    maxOutputTokens: 100,
    supportsServerTools: false,
  };
  const model = {
    facts,
    async *stream() {
      yield { type: "message-started", id: "m", model: "own" } as const;
    },
  };
  await using sample = await createSampleRuntime([], { model });
  await expect(sample.runtime.run("Go.").text).rejects.toThrow(/no event message-ended/);
});

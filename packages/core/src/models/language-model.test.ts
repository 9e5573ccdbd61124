import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { describe, expect, test } from "vitest";
import { createModelFromLanguageModel, type LanguageModel } from "./language-model.ts";
import type { ModelRequest } from "./model.ts";

const image = {
  type: "image" as const,
  source: { type: "base64" as const, media_type: "image/png", data: "AAAA" },
};
const pdf = {
  type: "document" as const,
  source: { type: "base64" as const, media_type: "application/pdf", data: "BBBB" },
  title: "a.pdf",
};

describe("[MDL-3] every generation of the AI SDK's interface is spoken", () => {
  test.each([
    [
      "v2",
      "AAAA",
      { type: "media", data: "AAAA", mediaType: "image/png" },
      { p: { reasoningEffort: "low" } },
    ],
    [
      "v3",
      "AAAA",
      { type: "image-data", data: "AAAA", mediaType: "image/png" },
      { p: { reasoningEffort: "low" } },
    ],
    [
      "v4",
      { type: "data", data: "AAAA" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
      undefined,
    ],
  ])("%s", async (specificationVersion, data, resultFile, providerOptions) => {
    const { languageModel, calls } = answering([{ type: "finish", finishReason: "stop" }], {
      specificationVersion,
    });
    const model = createModelFromLanguageModel(languageModel, { takesResultFiles: true, takesEffort: true });
    await drain(model.stream(request, { signal: new AbortController().signal }));
    expect(calls[0]).toMatchObject({
      prompt: [
        {
          role: "user",
          content: [
            { type: "file", mediaType: "image/png", data },
            { type: "file", mediaType: "application/pdf", filename: "a.pdf" },
          ],
        },
        { role: "assistant", content: [{ type: "tool-call", toolName: "Read" }] },
        {
          role: "tool",
          content: [{ toolName: "Read", output: { type: "content", value: [{ type: "text" }, resultFile] } }],
        },
      ],
    });
    expect(calls[0]?.["providerOptions"]).toEqual(
      providerOptions && expect.objectContaining(providerOptions),
    );
    expect(calls[0]?.["reasoning"]).toBe(specificationVersion === "v4" ? "low" : undefined);
  });
});

describe("[MDL-3] a provider's package that misbehaves does no harm", () => {
  test("one that ignores its signal is left, and what it opens later is closed", async () => {
    const opened = Promise.withResolvers<{ stream: ReadableStream<unknown> }>();
    const model = createModelFromLanguageModel({ ...plain, doStream: () => opened.promise });
    const controller = new AbortController();
    const waiting = drain(model.stream(request, { signal: controller.signal }));
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    const closed = Promise.withResolvers<void>();
    opened.resolve({ stream: new ReadableStream({ cancel: () => closed.resolve() }) });
    await closed.promise;
  });

  test("one that throws before it promises anything is a ModelFault", async () => {
    const model = createModelFromLanguageModel({
      ...plain,
      doStream: () => {
        throw new Error("oh");
      },
    });
    const waiting = drain(model.stream(request, { signal: new AbortController().signal }));
    await expect(waiting).rejects.toMatchObject({ code: "server-error", message: "p/m: oh" });
  });

  test("one that says nothing has stalled, and its connection is closed", async () => {
    const closed = Promise.withResolvers<void>();
    const silent = new ReadableStream({ cancel: () => closed.resolve() });
    const model = createModelFromLanguageModel(
      { ...plain, doStream: async () => ({ stream: silent }) },
      { timeouts: { firstTokenMs: 5 } },
    );
    const waiting = drain(model.stream(request, { signal: new AbortController().signal }));
    await expect(waiting).rejects.toMatchObject({ code: "stalled", mayPass: true });
    await closed.promise;
  });

  test("a reader that stops early closes the stream", async () => {
    const closed = Promise.withResolvers<void>();
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue({ type: "text-delta", id: "t", delta: "x" }),
      cancel: () => closed.resolve(),
    });
    const model = createModelFromLanguageModel({ ...plain, doStream: async () => ({ stream: endless }) });
    for await (const event of model.stream(request, { signal: new AbortController().signal })) {
      if (event.type === "text-delta") break;
    }
    await closed.promise;
  });
});

const plain = { specificationVersion: "v3", provider: "p.chat", modelId: "m" };

const request: ModelRequest = {
  system: [],
  tools: [],
  effort: "low",
  messages: [
    { role: "user", content: [image, pdf] },
    { role: "assistant", content: [{ type: "tool_use", id: "c", name: "Read", input: {} }] },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "seen" }, image] }],
    },
  ],
};

function answering(parts: readonly JsonRecord[], more: { readonly specificationVersion: string }) {
  const calls: JsonRecord[] = [];
  const languageModel: LanguageModel = {
    ...plain,
    ...more,
    async doStream(options: JsonRecord) {
      calls.push(options);
      return { stream: ReadableStream.from(parts) };
    },
  };
  return { languageModel, calls };
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

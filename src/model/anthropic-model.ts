import { isRecord } from "../foundation/json-value.ts";
import { requestError, stalledError, streamError } from "./anthropic-error.ts";
import { createMessageAssembler } from "./anthropic-message.ts";
import { createRequestBuilder } from "./anthropic-request.ts";
import { type AnthropicAccess, createAnthropicSender } from "./anthropic-sender.ts";
import type { Model, ModelEvent, ModelFacts, ModelRequest } from "./model.ts";
import { lookUpModel } from "./model-catalog.ts";
import { ModelError } from "./model-error.ts";
import { createSseDecoder, type SseEvent } from "./sse-decoder.ts";
import { createStallWatch, type StallLimits, type StallWatch } from "./stall-watch.ts";

export interface AnthropicModelOptions extends AnthropicAccess {
  readonly id: string;
  /** What is known of the model, where it is better known than by the catalog. */
  readonly facts?: ModelFacts;
  /** What to send as the model's name, where a gateway calls it otherwise. */
  readonly wireId?: string;
  readonly timeouts: StallLimits;
}

/** A Claude model through the official SDK. The SDK is loaded with the first request. */
export function createAnthropicModel(options: AnthropicModelOptions): Model {
  const known = lookUpModel(options.id);
  const facts = options.facts ?? known.facts;
  const headers = known.asksForLargeWindow ? largeWindow : {};
  const sender = createAnthropicSender({ ...options, headers: { ...headers, ...options.headers } });
  const builder = createRequestBuilder({
    ...facts,
    model: options.wireId ?? known.wireId,
    traits: known.traits,
  });

  async function* attempt(request: ModelRequest, signal: AbortSignal, withoutThinking: boolean) {
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    signal.addEventListener("abort", abort, { once: true });
    using watch = createStallWatch(options.timeouts, abort);
    let chunks: AsyncIterator<Uint8Array> | undefined;
    let isComplete = false;
    let requestId: string | undefined;
    try {
      signal.throwIfAborted();
      const parameters = builder.build(request, { withoutThinking });
      const { timeouts } = options;
      const send = await sender.prepare(controller.signal);
      watch.wait();
      const response = await send(parameters, { signal: controller.signal, timeouts });
      watch.rest();
      requestId = response.headers.get("request-id") ?? undefined;
      chunks = bodyOf(response);
      for await (const event of readEvents(chunks, watch, requestId)) {
        isComplete = event.type === "message-ended";
        yield event;
        signal.throwIfAborted();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (watch.stalled !== undefined) throw stalledError(watch.stalled, error);
      throw chunks === undefined ? requestError(error, sender.baseUrl) : streamError(error, requestId);
    } finally {
      signal.removeEventListener("abort", abort);
      if (isComplete && chunks !== undefined) void drain(chunks, abort);
      else abort();
    }
  }

  return {
    facts,
    async *stream(request, { signal }) {
      try {
        yield* attempt(request, signal, false);
      } catch (error) {
        if (!isThinkingRefused(error) || !hasThinking(request)) throw error;
        yield* attempt(request, signal, true);
      }
    },
  };
}

const largeWindow = { "anthropic-beta": "context-1m-2025-08-07" };

async function* readEvents(
  chunks: AsyncIterator<Uint8Array>,
  watch: StallWatch,
  requestId: string | undefined,
): AsyncGenerator<ModelEvent> {
  const decoder = createSseDecoder();
  const assembler = createMessageAssembler(requestId);
  while (true) {
    watch.wait();
    const next = await chunks.next();
    watch.rest();
    if (next.done === true) break;
    for (const raw of decoder.push(next.value)) {
      if (raw.event === "ping") continue;
      const event = parseEvent(raw);
      if (raw.event.startsWith("content_block")) watch.heardAnswer();
      const meaning = assembler.take(event);
      if (meaning === undefined) continue;
      yield meaning;
      if (meaning.type === "message-ended") return;
    }
  }
  const last = assembler.end();
  if (last !== undefined) yield last;
}

function parseEvent({ event, data }: SseEvent): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(data);
    if (isRecord(value)) return value;
  } catch {
    // Said below, with what was expected.
  }
  // Whatever an error event says, the answer is lost.
  if (event === "error") return { type: "error", error: { type: "api_error", message: data.slice(0, 200) } };
  throw new ModelError(
    "stream-malformed",
    `The provider sent an event "${event}" that is not a JSON object: ${JSON.stringify(data.slice(0, 80))}.`,
  );
}

function bodyOf(response: Response): AsyncIterator<Uint8Array> {
  if (response.body === null) throw new ModelError("stream-cut", "The provider's answer has no body.");
  return response.body[Symbol.asyncIterator]();
}

/** Reads what is left after the message, so that the connection can serve again; gives it up if that takes long. */
async function drain(chunks: AsyncIterator<Uint8Array>, giveUp: () => void): Promise<void> {
  const timer = setTimeout(giveUp, 1000);
  try {
    while ((await chunks.next()).done !== true);
  } catch {
    // The message is whole; what happens to its connection afterwards matters to nobody.
  } finally {
    clearTimeout(timer);
  }
}

/** Thinking belongs to the model and account that wrote it; a conversation taken over by another goes on without. */
function isThinkingRefused(error: unknown): boolean {
  return (
    error instanceof ModelError &&
    error.code === "invalid-request" &&
    error.status === 400 &&
    /thinking|signature/i.test(error.message)
  );
}

function hasThinking({ messages }: ModelRequest): boolean {
  return messages.some(
    ({ role, content }) =>
      role === "assistant" && content.some(({ type }) => type === "thinking" || type === "redacted_thinking"),
  );
}

import type { Anthropic } from "@anthropic-ai/sdk";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { createParser } from "eventsource-parser";
import { createHttpFetch } from "../create-http-fetch.ts";
import { type KnownModel, lookUpModel } from "../look-up-model.ts";
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import { createAnswerGuard, lineTooLong, ModelError, maxLine } from "../model-error.ts";
import { createStallWatch, type StallLimits, type StallWatch } from "../stall-watch.ts";
import { createBodyEncoder, type EncodedBody } from "./body-encoder.ts";
import { createRequestBuilder } from "./create-request-builder.ts";
import { createMessageAssembler } from "./message-assembler.ts";
import { requestError, stalledError, streamError } from "./request-error.ts";

/** Where the provider is, and what proves that we may ask it. */
export interface AnthropicAccess {
  readonly apiKey?: string;
  readonly authToken?: string;
  readonly baseUrl?: string;
  /** Asked for a key before each request; the one that gives it decides how long a key is kept. */
  readonly apiKeyHelper?: () => Promise<string>;
  readonly headers?: Readonly<Record<string, string>>;
  /** How requests travel; absent means our own over node:http. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface AnthropicSender {
  readonly baseUrl: string;
  /** Loads what is needed and asks for the key; the provider is not to blame for the time that takes. */
  prepare(signal: AbortSignal): Promise<Send>;
}

/** Takes the JSON of the request; resolves when the answer begins; its body is a stream of server-sent events. */
export type Send = (
  body: Uint8Array,
  options: { readonly signal: AbortSignal; readonly timeouts: StallLimits },
) => Promise<Response>;

const defaultBaseUrl = "https://api.anthropic.com";

export function createAnthropicSender(access: AnthropicAccess): AnthropicSender {
  const baseUrl = access.baseUrl ?? defaultBaseUrl;
  let client: Promise<Anthropic> | undefined;

  return {
    baseUrl,
    async prepare(signal) {
      client ??= createClient(access, baseUrl);
      const sdk = await abortable(client, signal);
      const helper = helperOf(access);
      const key = helper === undefined ? undefined : await abortable(askHelper(helper), signal);
      // `messages.create` prints warnings about models to the console; the request underneath is the same.
      return (body, { signal: sending, timeouts }) =>
        sdk
          .post("/v1/messages", {
            body,
            stream: true,
            signal: sending,
            timeout: Math.ceil(timeouts.firstTokenMs) + 1000,
            headers: {
              "content-type": "application/json",
              ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            },
          })
          .asResponse();
    },
  };
}

async function createClient(access: AnthropicAccess, baseUrl: string): Promise<Anthropic> {
  const { Anthropic } = await import("@anthropic-ai/sdk");
  return new Anthropic({
    baseURL: baseUrl,
    ...credential(access),
    // Retries are ours: they see all agents and what the provider asked of each.
    maxRetries: 0,
    logLevel: "off",
    fetch: access.fetch ?? createHttpFetch().fetch,
  });
}

/** The SDK takes one credential. Given none it would look for one on this machine, which could then reach a strange server. */
function credential({ apiKey, authToken, headers = {} }: AnthropicAccess) {
  if (authToken !== undefined) return { authToken, defaultHeaders: headers };
  if (apiKey !== undefined) return { apiKey, defaultHeaders: headers };
  return { apiKey: "none", defaultHeaders: { authorization: null, ...headers } };
}

/** A token or key that is set says more than a helper that could fetch one. */
function helperOf({ apiKey, authToken, apiKeyHelper }: AnthropicAccess): AnthropicAccess["apiKeyHelper"] {
  return apiKey === undefined && authToken === undefined ? apiKeyHelper : undefined;
}

async function askHelper(helper: () => Promise<string>): Promise<string> {
  let key = "";
  try {
    key = (await helper()).trim();
  } catch (error) {
    throw helperError(`failed: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  if (key === "") throw helperError("gave no key");
  return key;
}

function helperError(what: string, cause?: unknown): ModelError {
  return new ModelError("unauthorized", `The apiKeyHelper of your settings ${what}.`, {
    advice: "Run its command by hand and fix it, or set ANTHROPIC_API_KEY instead.",
    ...(cause === undefined ? {} : { cause }),
  });
}

export interface AnthropicModelOptions extends AnthropicAccess {
  readonly id: string;
  /** What is known of the model; absent: what the catalog says. */
  readonly known?: KnownModel;
  /** What to send as the model's name, where a gateway calls it otherwise. */
  readonly wireId?: string;
  readonly timeouts: StallLimits;
}

/** A Claude model through the official SDK. The SDK is loaded with the first request. */
export function createAnthropicModel(options: AnthropicModelOptions): Model {
  const { known = lookUpModel(options.id) } = options;
  const { facts } = known;
  const window = known.asksForLargeWindow ? largeWindow : {};
  const sender = createAnthropicSender({ ...options, headers: { ...window, ...options.headers } });
  const builder = createRequestBuilder({
    ...facts,
    model: options.wireId ?? known.wireId,
    traits: known.traits,
  });
  const encoder = createBodyEncoder();

  async function* attempt(request: ModelRequest, signal: AbortSignal, withoutThinking: boolean) {
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    signal.addEventListener("abort", abort, { once: true });
    using watch = createStallWatch(options.timeouts, abort);
    let chunks: AsyncIterator<Uint8Array> | undefined;
    let isComplete = false;
    let requestId: string | undefined;
    let body: EncodedBody | undefined;
    try {
      signal.throwIfAborted();
      body = encoder.encode(builder.build(request, { withoutThinking }), request.messages);
      const send = await sender.prepare(controller.signal);
      watch.wait();
      const response = await send(body.bytes, { signal: controller.signal, timeouts: options.timeouts });
      watch.rest();
      requestId = response.headers.get("request-id") ?? undefined;
      chunks = bodyOf(response);
      const guard = createAnswerGuard(response.headers.get("content-type") ?? "");
      for await (const event of readEvents(guarded(chunks, guard), watch, requestId)) {
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
      if (isComplete) body?.release();
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

/** Bytes that are no part of a stream of events are not passed on; what they are is said when it is clear. */
function guarded(
  chunks: AsyncIterator<Uint8Array>,
  guard: ReturnType<typeof createAnswerGuard>,
): AsyncIterator<Uint8Array> {
  const held: Uint8Array[] = [];
  return {
    async next() {
      while (true) {
        const next = await chunks.next();
        if (next.done === true) {
          guard.end();
          return next;
        }
        held.push(next.value);
        if (guard.take(next.value)) return { done: false, value: joined(held) };
      }
    },
  };
}

function joined(held: Uint8Array[]): Uint8Array {
  const [only, ...more] = held.splice(0);
  return more.length === 0 ? (only ?? new Uint8Array()) : Buffer.concat([only ?? new Uint8Array(), ...more]);
}

/** Reads what is left after the message, so that the connection can serve again; gives it up if that takes long. */
async function drain(chunks: AsyncIterator<Uint8Array>, giveUp: () => void): Promise<void> {
  const timer = setTimeout(giveUp, 1000);
  try {
    while ((await chunks.next()).done !== true);
  } catch {
    // The message is whole; what happens to its connection afterwards matters to no one.
  } finally {
    clearTimeout(timer);
  }
}

/** Thinking belongs to the model and account that wrote it; a conversation taken over by another continues without. */
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

/** One server-sent event. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

interface SseDecoder {
  /** The events that these bytes complete; any cut of the bytes gives the same events. */
  push(bytes: Uint8Array): readonly SseEvent[];
}

/** Reads server-sent events from pieces of a response; a line without an end is a ModelError. An event that was not closed by an empty line is not returned. */
export function createSseDecoder(): SseDecoder {
  const decoder = new TextDecoder();
  let events: SseEvent[] = [];
  const parser = createParser({
    maxBufferSize: maxLine,
    onEvent: ({ event = "", data }) => events.push({ event, data }),
    onError(error) {
      // Unknown fields are passed over, as the format asks for.
      if (error.type === "max-buffer-size-exceeded") throw lineTooLong();
    },
  });
  return {
    push(bytes) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      const completed = events;
      events = [];
      return completed;
    },
  };
}

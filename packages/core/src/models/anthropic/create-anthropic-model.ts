// @io
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { createHttpFetch } from "../create-http-fetch.ts";
import { type KnownModel, lookUpModel } from "../look-up-model.ts";
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import { createAnswerGuard, ModelError } from "../model-error.ts";
import { PlainHeaders } from "../plain-headers.ts";
import { readQuotaReport } from "../read-quota-report.ts";
import type { HeaderReader } from "../read-retry-after.ts";
import { createStallWatch, type StallLimits, type StallWatch } from "../stall-watch.ts";
import { createBodyEncoder, type EncodedBody } from "./body-encoder.ts";
import { createRequestBuilder } from "./create-request-builder.ts";
import { createSseDecoder, type SseEvent } from "./create-sse-decoder.ts";
import { createMessageAssembler } from "./message-assembler.ts";
import { connectionError, requestError, stalledError, statusError, streamError } from "./request-error.ts";

/** Where the provider is, and the credentials for it. */
export interface AnthropicAccess {
  readonly apiKey?: string;
  /** Wins over `apiKey`. */
  readonly authToken?: string;
  readonly baseUrl?: string;
  /** Asked for a key before each request when neither key nor token is set; it decides how long it caches one. */
  readonly apiKeyHelper?: () => Promise<string>;
  /** Sent with every request; they replace headers of ours that have the same name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How requests are sent; absent means our own `fetch` over node:http. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface AnthropicModelOptions extends AnthropicAccess {
  readonly id: string;
  /** What is known of the model; absent: what the catalog says. */
  readonly known?: KnownModel;
  /** What to send as the model's name, where a gateway calls it otherwise. */
  readonly wireId?: string;
  /** Whether the endpoint loads tools where they were found; one that refuses to is not asked again. */
  readonly defersTools?: boolean;
  readonly timeouts: StallLimits;
}

/** A Claude model over the Messages API of Anthropic or of a gateway that offers the same. */
export function createAnthropicModel(options: AnthropicModelOptions): Model {
  const { known = lookUpModel(options.id), baseUrl = "https://api.anthropic.com" } = options;
  const { facts } = known;
  const { fetch = createHttpFetch().fetch } = options;
  const builder = createRequestBuilder({
    ...facts,
    model: options.wireId ?? known.wireId,
    traits: known.traits,
  });
  const encoder = createBodyEncoder();
  const credential = options.authToken ?? options.apiKey;
  const helper = credential === undefined ? options.apiKeyHelper : undefined;
  const requestHeaders = createHeaderMaker({ credential, given: options.headers });

  let defersTools = options.defersTools === true;

  /** Resolves when the answer begins; its body is a stream of server-sent events. */
  async function post(
    body: Uint8Array,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Response> {
    const url = new URL(`${baseUrl.replace(/\/$/, "")}/v1/messages`);
    // The encoder's buffers are never shared memory, which is all that this type leaves out.
    const init = { method: "POST", headers, body: body as Uint8Array<ArrayBuffer>, signal };
    const response = await fetch(url, init).catch((error: unknown) => {
      throw connectionError(error, baseUrl);
    });
    if (response.ok) return response;
    const text = await response.text().catch(String);
    throw statusError({ status: response.status, text, host: url.host }, headerOf(response));
  }

  async function* attempt(
    request: ModelRequest,
    signal: AbortSignal,
    withoutThinking: boolean,
  ): AsyncGenerator<ModelEvent> {
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
      body = encoder.encode(builder.build(request, { withoutThinking, defersTools }), request.messages);
      // The provider is not to blame for the time that the helper takes.
      const key = helper === undefined ? undefined : await abortable(askHelper(helper), controller.signal);
      const headers = requestHeaders(key, [
        ...(known.asksForLargeWindow ? ["context-1m-2025-08-07"] : []),
        ...(defersTools && searchesTools(request) ? [deferringBeta] : []),
      ]);
      watch.wait();
      const response = await post(body.bytes, headers, controller.signal);
      watch.rest();
      requestId = response.headers.get("request-id") ?? undefined;
      const report = readQuotaReport(headerOf(response), options.id);
      if (report !== undefined) yield { type: "quota-reported", ...report };
      if (response.body === null) throw new ModelError("stream-cut", "The provider's answer has no body.");
      chunks = response.body[Symbol.asyncIterator]();
      const guard = createAnswerGuard(response.headers.get("content-type") ?? "");
      for await (const event of readEvents(guarded(chunks, guard), watch, requestId)) {
        isComplete = event.type === "message-ended";
        yield event;
        signal.throwIfAborted();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (watch.stalled !== undefined) throw stalledError(watch.stalled, error);
      throw chunks === undefined ? requestError(error, baseUrl) : streamError(error, requestId);
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
        if (defersTools && searchesTools(request) && isDeferringRefused(error)) {
          defersTools = false;
          yield* attempt(request, signal, false);
        } else {
          if (!isThinkingRefused(error) || !hasThinking(request)) throw error;
          yield* attempt(request, signal, true);
        }
      }
    },
  };
}

/** Makes the headers of requests, which are mostly the same from one to the next. */
function createHeaderMaker({
  credential,
  given = {},
}: {
  readonly credential: string | undefined;
  readonly given: AnthropicAccess["headers"];
}) {
  const make = (helperKey: string | undefined, betas: readonly string[]): Record<string, string> => {
    const headers = new PlainHeaders({
      accept: "application/json",
      "user-agent": "retinue",
      "anthropic-version": apiVersion,
    });
    if (credential !== undefined) headers.set("authorization", `Bearer ${credential}`);
    if (betas.length > 0) headers.set("anthropic-beta", betas.join(","));
    for (const [name, value] of Object.entries(given)) {
      const isBeta = name.toLowerCase() === "anthropic-beta" && betas.includes(deferringBeta);
      headers.set(name, isBeta ? `${value},${deferringBeta}` : value);
    }
    if (helperKey !== undefined) headers.set("authorization", `Bearer ${helperKey}`);
    headers.set("content-type", "application/json");
    return Object.fromEntries(headers);
  };
  let last: { readonly key: string; readonly headers: Record<string, string> } | undefined;
  return (helperKey: string | undefined, betas: readonly string[]): Record<string, string> => {
    const key = JSON.stringify([helperKey, betas]);
    if (last?.key !== key) last = { key, headers: make(helperKey, betas) };
    return { ...last.headers };
  };
}

function headerOf({ headers }: Response): HeaderReader {
  return (name) => headers.get(name) ?? undefined;
}

/** The version of the Messages API whose requests are written and whose events are read here. */
export const apiVersion = "2026-10-21";

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
      if (raw.event.startsWith("content_block")) watch.answerStarted();
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
  // Whatever an error event contains, the answer is lost.
  if (event === "error") return { type: "error", error: { type: "api_error", message: data.slice(0, 200) } };
  throw new ModelError(
    "stream-malformed",
    `The provider sent an event "${event}" that is not a JSON object: ${JSON.stringify(data.slice(0, 80))}.`,
  );
}

/** Bytes that are no part of a stream of events are not passed on; what they are is reported when it is clear. */
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
    // The message is whole; what happens to its connection afterwards does not matter.
  } finally {
    clearTimeout(timer);
  }
}

/** What asks for tools that are loaded where they were found. */
const deferringBeta = "advanced-tool-use-2025-11-20";

function searchesTools({ tools }: ModelRequest): boolean {
  return tools.some(({ loading }) => loading === "searches");
}

/** An endpoint without support for tools that are loaded later gets them as any other. */
function isDeferringRefused(error: unknown): boolean {
  return (
    error instanceof ModelError &&
    error.code === "invalid-request" &&
    error.status === 400 &&
    /defer_loading|tool_reference|deferred_tools|advanced-tool-use|anthropic-beta/i.test(error.message)
  );
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

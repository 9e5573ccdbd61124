import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { anthropicWire } from "./anthropic-wire.ts";
import { openAiWire } from "./openai-wire.ts";
import { type CacheCount, createPromptCache, type PromptCache } from "./prompt-cache.ts";
import { createScript, isScript, type Script, type Step, type StepFunction } from "./script.ts";
import {
  answerStep,
  errorKinds,
  failsConcurrency,
  piecesOf,
  type ScriptedAnswer,
} from "./scripted-answer.ts";
import { isStatusError, textOfValue, type Wire, type WireStream } from "./wire.ts";

export interface FakeProviderOptions {
  readonly script?: readonly Step[] | undefined;
  /** Answers every request that the script does not. */
  readonly respond?: StepFunction | undefined;
  /** Wait before the first byte of each answer. */
  readonly latencyMs?: number | undefined;
  /** Wait before each delta, unless the step has its own. */
  readonly deltaDelayMs?: number | undefined;
  /** Characters in a delta; 24 unless given. */
  readonly deltaSize?: number | undefined;
  /** The only key that is accepted; any when absent. */
  readonly apiKey?: string | undefined;
  /** Longer prompts are refused. */
  readonly contextWindow?: number | undefined;
  /** Prefixes shorter than this are not cached; 1,024 unless given. */
  readonly minimumCacheTokens?: number | undefined;
  /** So many requests are answered in a window of time that begins with the first of them; then they are refused until it is over. */
  readonly quota?: { readonly requests: number; readonly everyMs: number } | undefined;
  /** The clock by which cached prefixes grow old and quotas begin anew. */
  readonly now?: (() => number) | undefined;
  readonly port?: number | undefined;
  /** False for long runs whose memory is measured; then `requests` stays empty. */
  readonly keepsRequests?: boolean | undefined;
}

export interface ProviderRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: JsonRecord;
  /** The body as the request of a model. */
  readonly request: ModelRequest;
  /** What the answer said was used; absent when there was none. */
  readonly usage?: Usage;
  readonly status: "open" | "answered" | "failed" | "abandoned";
}

export interface FakeProvider extends AsyncDisposable {
  /** `http://127.0.0.1:port`; OpenAI clients want `/v1` behind it. */
  readonly url: string;
  /** Requests for answers so far, in order; counting tokens is not among them. */
  readonly requests: readonly ProviderRequest[];
  /** Throws when steps of the script are left or requests found none, and lists them. */
  finish(): void;
  /** Ends it; `await using` does the same. */
  close(): Promise<void>;
}

/** A server on this machine that speaks the Anthropic Messages and the OpenAI chat completions protocols. */
export async function startFakeProvider(options: FakeProviderOptions): Promise<FakeProvider> {
  const isNumber = checks.amount;
  checkTable(
    "startFakeProvider",
    {
      script: isScript,
      respond: checks.call,
      latencyMs: isNumber,
      deltaDelayMs: isNumber,
      deltaSize: checks.count,
      apiKey: checks.text,
      contextWindow: checks.count,
      quota: checks.shape({ requests: checks.count, everyMs: checks.count }, ["requests", "everyMs"]),
      minimumCacheTokens: checks.amount,
      now: checks.call,
      port: checks.amount,
      keepsRequests: checks.flag,
    },
    options,
  );
  const { script = [], respond, minimumCacheTokens: minimumTokens = 1_024 } = options;
  const always: readonly Step[] = respond === undefined ? [] : [{ respond, times: "any" }];
  const now = options.now ?? (() => performance.now());
  let number = 0;
  const session: Session = {
    options,
    script: createScript([...script, ...always]),
    cache: createPromptCache({ minimumTokens, now }),
    quota: options.quota === undefined ? undefined : createQuota(options.quota, options.now ?? Date.now),
    requests: [],
    nextNumber: () => {
      number += 1;
      return number;
    },
  };
  const server = createServer((incoming, response) => {
    serve(session, incoming, response).catch((error: unknown) => {
      // A client that went away ends the waits inside; then nothing is left to be notified.
      if (response.headersSent || response.destroyed) return response.destroy();
      return sendJson(response, 400, anthropicWire.errorBody("invalid-request", messageOf(error)));
    });
  });
  await listen(server, options.port ?? 0);
  const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
  async function close(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    requests: session.requests,
    finish: session.script.finish,
    close,
    [Symbol.asyncDispose]: close,
  };
}

type OpenRequest = { -readonly [Key in keyof ProviderRequest]: ProviderRequest[Key] };

interface Session {
  readonly options: FakeProviderOptions;
  readonly script: Script;
  readonly cache: PromptCache;
  readonly quota: Quota | undefined;
  readonly requests: OpenRequest[];
  readonly nextNumber: () => number;
}

async function serve(session: Session, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () =>
    gone.abort(new RetinueError("client-gone", "The client closed the connection.")),
  );
  const parsed: unknown = JSON.parse((await text(incoming)) || "{}");
  const exchange: Exchange = {
    path: (incoming.url ?? "/").split("?")[0] ?? "/",
    headers: incoming.headers,
    body: isRecord(parsed) ? parsed : {},
    response,
    signal: gone.signal,
  };
  const route = `${incoming.method} ${exchange.path}`;
  switch (route) {
    case "POST /v1/messages":
      return serveAnswer(session, exchange, anthropicWire);
    case "POST /v1/chat/completions":
      return serveAnswer(session, exchange, openAiWire);
    case "POST /v1/messages/count_tokens": {
      const { inputTokens, cacheReadTokens, cacheWriteTokens } = session.cache.count(exchange.body);
      return sendJson(response, 200, { input_tokens: inputTokens + cacheReadTokens + cacheWriteTokens });
    }
    case "GET /v1/models":
      if (!acceptsKey(exchange, session.options))
        return sendJson(response, 401, anthropicWire.errorBody("unauthorized", wrongKey));
      return sendJson(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
    default:
      return sendJson(response, 404, anthropicWire.errorBody("not-found", `There is no ${route} here.`));
  }
}

async function serveAnswer(session: Session, exchange: Exchange, wire: Wire): Promise<void> {
  const { options, cache, requests } = session;
  const { path, headers, body, response, signal } = exchange;
  const record: OpenRequest = { path, headers, body, request: wire.readRequest(body), status: "open" };
  if (options.keepsRequests !== false) requests.push(record);
  const number = session.nextNumber();
  response.once("close", () => {
    if (record.status === "open") record.status = response.writableFinished ? "answered" : "abandoned";
  });
  const refusal = refusalOf(exchange, wire, options) ?? session.quota?.take(response, wire);
  const count = cache.count(body);
  // Only the Messages protocol says what was cached; the other leaves it to the step.
  const counted = wire === anthropicWire ? tokensOf(count) : {};
  const answer = refusal ?? (await takeAnswer(session, record.request, { wire, number, counted }));
  if ("status" in answer) {
    record.status = "failed";
    return sendJson(response, answer.status, answer.body);
  }
  if (answer.failure === undefined) record.usage = answer.usage;
  else if (answer.failure !== "stall") record.status = "failed";
  if (options.latencyMs !== undefined) await wait(options.latencyMs, undefined, { signal });
  const delayMs = answer.delayMs || (options.deltaDelayMs ?? 0);
  const { deltaSize = 24 } = options;
  await sendAnswer({ ...answer, delayMs }, { wire, body, response, signal, deltaSize, onBegin: count.keep });
}

interface Refusal {
  readonly status: number;
  readonly body: JsonRecord;
}

interface AnswerPlace {
  readonly wire: Wire;
  readonly number: number;
  readonly counted: Partial<Usage>;
}

/** A request that the script does not foresee is refused in a way that is not retried. */
async function takeAnswer(
  { script }: Session,
  request: ModelRequest,
  { wire, number, counted }: AnswerPlace,
): Promise<ScriptedAnswer | Refusal> {
  try {
    const step = await script.take(request);
    return answerStep({ ...step, usage: { ...counted, ...step.usage } }, request, number);
  } catch (error) {
    return { status: 400, body: wire.errorBody("invalid-request", messageOf(error)) };
  }
}

interface Quota {
  /** Counts a request, with what the headers of the answer report; a refusal where there is nothing left. */
  take(response: ServerResponse, wire: Wire): Refusal | undefined;
}

function createQuota(
  { requests, everyMs }: NonNullable<FakeProviderOptions["quota"]>,
  now: () => number,
): Quota {
  let startedAt = Number.NEGATIVE_INFINITY;
  let used = 0;
  return {
    take(response, wire) {
      if (now() - startedAt >= everyMs) {
        startedAt = now();
        used = 0;
      }
      const isRefused = used >= requests;
      used = Math.min(requests, used + 1);
      // Headers count whole seconds, so the end of the window is given from the second that the date says.
      const seconds = Math.floor(Date.now() / 1000);
      const reset = seconds + (startedAt + everyMs - now()) / 1000;
      const headers = {
        date: new Date(seconds * 1000).toUTCString(),
        "anthropic-ratelimit-unified-status": isRefused ? "rejected" : "allowed",
        "anthropic-ratelimit-unified-reset": String(reset),
        "anthropic-ratelimit-unified-5h-utilization": String(used / requests),
        "anthropic-ratelimit-unified-5h-reset": String(reset),
      };
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      return isRefused
        ? { status: 429, body: wire.errorBody("rate-limited", "The quota of this window is used up.") }
        : undefined;
    },
  };
}

interface Exchange {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonRecord;
  readonly response: ServerResponse;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

const wrongKey = "The key is not accepted.";

function acceptsKey({ headers }: Pick<Exchange, "headers">, { apiKey }: FakeProviderOptions): boolean {
  const key = headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");
  return apiKey === undefined || key === apiKey;
}

function refusalOf(
  { headers, body }: Exchange,
  wire: Wire,
  { apiKey, contextWindow }: FakeProviderOptions,
): Refusal | undefined {
  if (!acceptsKey({ headers }, { apiKey }))
    return { status: 401, body: wire.errorBody("unauthorized", wrongKey) };
  const flaw = wire.findFlaw(body);
  if (flaw !== undefined) return { status: 400, body: wire.errorBody("invalid-request", flaw) };
  if (contextWindow === undefined) return undefined;
  const { inputTokens } = answerStep({}, wire.readRequest(body), 0).usage;
  if (inputTokens <= contextWindow) return undefined;
  const message = `prompt is too long: ${inputTokens} tokens > ${contextWindow} maximum`;
  return { status: 400, body: wire.errorBody("context-too-long", message) };
}

function tokensOf({ inputTokens, cacheReadTokens, cacheWriteTokens }: CacheCount): Partial<Usage> {
  return { inputTokens, cacheReadTokens, cacheWriteTokens };
}

function sendJson(response: ServerResponse, status: number, body: JsonRecord): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_fake" });
  response.end(JSON.stringify(body));
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return isRetinueError(error) ? `${error.code}: ${message}` : message;
}

function listen(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve());
  });
}

interface Line {
  readonly wire: Wire;
  readonly body: JsonRecord;
  readonly response: ServerResponse;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  readonly deltaSize: number;
  /** Called once the answer is sure to begin. */
  readonly onBegin: () => void;
}

/** Says an answer over HTTP, or does to the connection what its error says. */
async function sendAnswer(answer: ScriptedAnswer, line: Line): Promise<void> {
  if (failsConcurrency(answer)) return failBefore(answer, line);
  line.onBegin();
  if (line.body["stream"] === true) {
    const { wire, body, response, signal } = line;
    const stream = wire.openStream(answer, body, answer.usage);
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      ...requestIds,
    });
    let ready = stream.begin();
    for (const piece of piecesOf(answer, line.deltaSize)) {
      if (piece.type === "delta" && answer.delayMs > 0) {
        await write(response, ready);
        ready = "";
        await wait(answer.delayMs, undefined, { signal });
      }
      ready += stream.piece(piece);
    }
    if (answer.failure === undefined) return void response.end(ready + stream.end());
    await write(response, ready);
    await failInside(answer.failure, stream, line);
    return;
  }
  return sendWhole(answer, line);
}

async function failBefore({ failure, retryAfterMs }: ScriptedAnswer, line: Line): Promise<void> {
  if (failure === "stall") return untilGone(line.signal);
  if (failure === undefined || !isStatusError(failure)) {
    line.response.socket?.resetAndDestroy();
    return;
  }
  const { wire, response } = line;
  response.writeHead(wire.statusOf(failure), {
    "content-type": "application/json",
    ...requestIds,
    ...(retryAfterMs === undefined ? {} : retryHeaders(retryAfterMs)),
  });
  response.end(JSON.stringify(wire.errorBody(failure, errorKinds[failure].message)));
}

async function sendWhole(answer: ScriptedAnswer, line: Line): Promise<void> {
  const { wire, body, response, signal } = line;
  const json = JSON.stringify(wire.whole(answer, textOfValue(body["model"]), answer.usage));
  const { failure } = answer;
  if (failure !== undefined && isStatusError(failure)) return failBefore(answer, line);
  response.writeHead(200, { "content-type": "application/json", ...requestIds });
  if (failure === undefined) return void response.end(json);
  const half = json.slice(0, json.length / 2);
  if (failure === "malformed") return void response.end(half);
  await write(response, half);
  if (failure === "stall") return untilGone(signal);
  response.destroy();
}

async function failInside(
  failure: NonNullable<ScriptedAnswer["failure"]>,
  stream: WireStream,
  { response, signal }: Line,
): Promise<void> {
  if (failure === "stall") return untilGone(signal);
  if (failure === "malformed") return void response.end(stream.malformed());
  if (isStatusError(failure)) return void response.end(stream.error(failure, errorKinds[failure].message));
  response.destroy();
}

const requestIds = { "request-id": "req_fake", "x-request-id": "req_fake" };

function retryHeaders(ms: number): Readonly<Record<string, string>> {
  const seconds = { "retry-after": String(Math.ceil(ms / 1_000)) };
  return ms % 1_000 === 0 ? seconds : { ...seconds, "retry-after-ms": String(ms) };
}

/** Resolves when the bytes have left, so that what follows cannot overtake them. */
function write(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

function untilGone(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

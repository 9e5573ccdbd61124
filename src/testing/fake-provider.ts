import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import type { Usage } from "../conversation/usage.ts";
import { Fault, isFault } from "../foundation/fault.ts";
import { isRecord, type JsonRecord } from "../foundation/json-value.ts";
import type { ModelRequest } from "../model/model.ts";
import { anthropicWire } from "./anthropic-wire.ts";
import { openAiWire } from "./openai-wire.ts";
import { createPromptCache } from "./prompt-cache.ts";
import { createScript, type Step, type StepFunction } from "./script.ts";
import { answerStep, type ScriptedAnswer } from "./scripted-answer.ts";
import { sendAnswer } from "./send-answer.ts";
import type { Wire } from "./wire.ts";

export interface FakeProviderOptions {
  readonly script?: readonly Step[];
  /** Answers every request that the script does not. */
  readonly respond?: StepFunction;
  /** Wait before the first byte of each answer. */
  readonly latencyMs?: number;
  /** Wait before each delta, unless the step has its own. */
  readonly deltaDelayMs?: number;
  /** Characters in a delta; 24 unless told. */
  readonly deltaSize?: number;
  /** The only key that is accepted; any when absent. */
  readonly apiKey?: string;
  /** Longer prompts are refused. */
  readonly contextWindow?: number;
  /** Prefixes shorter than this are not cached; 1,024 unless told. */
  readonly minimumCacheTokens?: number;
  /** The clock by which cached prefixes grow old. */
  readonly now?: () => number;
  readonly port?: number;
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
}

/** A server on this machine that speaks the Anthropic Messages and the OpenAI chat completions protocols. */
export async function startFakeProvider(options: FakeProviderOptions): Promise<FakeProvider> {
  const { respond } = options;
  const always: readonly Step[] = respond === undefined ? [] : [{ respond, times: "any" }];
  const script = createScript([...(options.script ?? []), ...always]);
  const cache = createPromptCache({
    minimumTokens: options.minimumCacheTokens ?? 1_024,
    now: options.now ?? (() => performance.now()),
  });
  const requests: { -readonly [Key in keyof ProviderRequest]: ProviderRequest[Key] }[] = [];

  const serveAnswer = async (exchange: Exchange, wire: Wire) => {
    const { body, response, signal } = exchange;
    const request = wire.readRequest(body);
    const record: (typeof requests)[number] = {
      path: exchange.path,
      headers: exchange.headers,
      body,
      request,
      status: "open",
    };
    requests.push(record);
    const number = requests.length;
    response.once("close", () => {
      if (record.status === "open") record.status = response.writableFinished ? "answered" : "abandoned";
    });
    const refusal = refusalOf(exchange, wire, options);
    if (refusal !== undefined) {
      record.status = "failed";
      return sendJson(response, refusal.status, refusal.body);
    }
    const count = cache.count(body);
    let answer: ScriptedAnswer;
    try {
      const step = await script.take(request);
      const counted = wire === anthropicWire ? count : {};
      answer = answerStep({ ...step, usage: { ...tokensOf(counted), ...step.usage } }, request, number);
    } catch (error) {
      record.status = "failed";
      return sendJson(response, 400, wire.errorBody("invalid-request", messageOf(error)));
    }
    if (answer.fault === undefined) record.usage = answer.usage;
    else if (answer.fault !== "stall") record.status = "failed";
    if (options.latencyMs !== undefined) await wait(options.latencyMs, undefined, { signal });
    const delayMs = answer.delayMs || (options.deltaDelayMs ?? 0);
    await sendAnswer(
      { ...answer, delayMs },
      {
        wire,
        body,
        response,
        signal,
        deltaSize: options.deltaSize ?? 24,
        onBegin: () => count.keep(),
      },
    );
  };

  const serve = async (incoming: IncomingMessage, response: ServerResponse) => {
    const exchange = await readExchange(incoming, response);
    const route = `${incoming.method} ${exchange.path}`;
    if (route === "POST /v1/messages") return serveAnswer(exchange, anthropicWire);
    if (route === "POST /v1/chat/completions") return serveAnswer(exchange, openAiWire);
    if (route === "POST /v1/messages/count_tokens") {
      const { inputTokens, cacheReadTokens, cacheWriteTokens } = cache.count(exchange.body);
      return sendJson(response, 200, { input_tokens: inputTokens + cacheReadTokens + cacheWriteTokens });
    }
    if (route === "GET /v1/models") {
      return sendJson(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
    }
    return sendJson(response, 404, anthropicWire.errorBody("not-found", `There is no ${route} here.`));
  };

  const server = createServer((incoming, response) => {
    // A client that goes away ends the waits inside; nobody is left to be told.
    serve(incoming, response).catch(() => response.destroy());
  });
  await listen(server, options.port ?? 0);
  const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    finish: script.finish,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
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

async function readExchange(incoming: IncomingMessage, response: ServerResponse): Promise<Exchange> {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Fault("client-gone", "The client closed the connection.")));
  const parsed: unknown = JSON.parse((await text(incoming)) || "{}");
  return {
    path: (incoming.url ?? "/").split("?")[0] ?? "/",
    headers: incoming.headers,
    body: isRecord(parsed) ? parsed : {},
    response,
    signal: gone.signal,
  };
}

function refusalOf(
  { headers, body }: Exchange,
  wire: Wire,
  { apiKey, contextWindow }: FakeProviderOptions,
): { readonly status: number; readonly body: JsonRecord } | undefined {
  const key = headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");
  if (apiKey !== undefined && key !== apiKey) {
    return { status: 401, body: wire.errorBody("unauthorized", "The key is not accepted.") };
  }
  const flaw = wire.findFlaw(body);
  if (flaw !== undefined) return { status: 400, body: wire.errorBody("invalid-request", flaw) };
  if (contextWindow === undefined) return undefined;
  const { inputTokens } = answerStep({}, wire.readRequest(body), 0).usage;
  if (inputTokens <= contextWindow) return undefined;
  const message = `prompt is too long: ${inputTokens} tokens > ${contextWindow} maximum`;
  return { status: 400, body: wire.errorBody("context-too-long", message) };
}

function tokensOf(count: Partial<Usage>): Partial<Usage> {
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = count;
  if (inputTokens === undefined || cacheReadTokens === undefined || cacheWriteTokens === undefined) return {};
  return { inputTokens, cacheReadTokens, cacheWriteTokens };
}

function sendJson(response: ServerResponse, status: number, body: JsonRecord): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_fake" });
  response.end(JSON.stringify(body));
}

function messageOf(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  return isFault(error) ? `${error.code}: ${said}` : said;
}

function listen(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve());
  });
}

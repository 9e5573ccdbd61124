// @io
import type { ClientRequest, IncomingMessage } from "node:http";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { maxErrorBody } from "./model-error.ts";
import { PlainHeaders } from "./plain-headers.ts";

type Fetch = typeof globalThis.fetch;
type Send = (url: URL, init: SendInit) => ClientRequest;

export interface HttpFetch extends Disposable {
  readonly fetch: Fetch;
}

interface SendInit {
  readonly method: string;
  readonly headers: Record<string, string>;
}

/**
 * A `fetch` over node:http that keeps connections open between requests until it is disposed of; several times faster
 * than the built-in one where answers are many and small. Redirects are answers like others: following one would hand on
 * the key. Bodies are read as async iterables. Proxies are not known here.
 */
export function createHttpFetch(): HttpFetch {
  const senders = new Map<string, Promise<Sender>>();
  let isOpen = true;

  function senderFor(protocol: string): Promise<Sender> {
    let sender = senders.get(protocol);
    if (sender === undefined) {
      sender = createSender(protocol === "https:", isOpen);
      senders.set(protocol, sender);
    }
    return sender;
  }

  return {
    async fetch(input, init = {}) {
      const url = new URL(typeof input === "string" || input instanceof URL ? input : input.url);
      const signal = init.signal ?? undefined;
      const { send } = await senderFor(url.protocol);
      signal?.throwIfAborted();
      const body = bytesOf(init.body);
      const headers = Object.fromEntries(new PlainHeaders(init.headers));
      headers["content-length"] = String(body.length);
      const method = init.method ?? "GET";
      return toResponse(await exchange(() => send(url, { method, headers }), body, signal), url);
    },
    [Symbol.dispose]() {
      isOpen = false;
      const opened = [...senders.values()];
      // A request that comes late all the same gets a connection that closes after its answer.
      senders.clear();
      for (const sender of opened)
        sender.then(
          ({ close }) => close(),
          () => undefined,
        );
    },
  };
}

function bytesOf(body: RequestInit["body"]): Uint8Array {
  return body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : "");
}

interface Sender {
  readonly send: Send;
  readonly close: () => void;
}

/** Each protocol's code is loaded when it is first needed. */
async function createSender(isSecure: boolean, keepAlive: boolean): Promise<Sender> {
  const { Agent, request } = isSecure ? await import("node:https") : await import("node:http");
  const agent = new Agent(keepAlive ? keepOpen : {});
  return { send: (url, init) => request(url, { ...init, agent }), close: () => agent.destroy() };
}

/** A connection that serves no one is closed after a while, and there are never many of them. */
const keepOpen = { keepAlive: true, scheduling: "lifo", maxFreeSockets: 32, timeout: 60_000 } as const;

/** A kept connection may have been closed by the other side just now; then, and only then, a fresh one is tried. */
async function exchange(
  open: () => ClientRequest,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  for (let isFirst = true; ; isFirst = false) {
    const request = open();
    try {
      return await headOf(request, body, signal);
    } catch (error) {
      signal?.throwIfAborted();
      const wasStale = request.reusedSocket && isRecord(error) && error["code"] === "ECONNRESET";
      if (!isFirst || !wasStale) throw error;
    }
  }
}

/**
 * Sends the request and waits for the head of its answer. An abort ends the answer's body too; the `signal` option of
 * node:http would also end a connection that had been handed back already, with an error that no one hears.
 */
function headOf(
  request: ClientRequest,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let response: IncomingMessage | undefined;
    const abort = (): void => {
      (response ?? request).destroy(abortError());
    };
    const forget = (): void => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
    request.on("error", (error) => {
      if (response === undefined) forget();
      reject(error);
    });
    request.on("response", (message) => {
      response = message;
      // Who reads the body sees the error there; without a listener it would end the process.
      message.on("error", () => undefined);
      message.on("close", forget);
      resolve(message);
    });
    request.end(body);
  });
}

function abortError(): Error {
  return Object.assign(new Error("The request was aborted."), { name: "AbortError", code: "ABORT_ERR" });
}

/** The part of a Response that the official SDK uses; a real one would wrap the body in a slower stream. */
function toResponse(message: IncomingMessage, url: URL): Response {
  const status = message.statusCode ?? 0;
  const response = {
    ok: status >= 200 && status < 300,
    status,
    statusText: message.statusMessage ?? "",
    url: url.href,
    headers: readHeaders(message.rawHeaders),
    body: message,
    text: () => readText(message),
    json: async (): Promise<unknown> => JSON.parse(await readText(message)),
  };
  // Everything of a Response that is used behind this point is there; the rest is not.
  return response as unknown as Response;
}

function readHeaders(raw: readonly string[]): PlainHeaders {
  const headers = new PlainHeaders();
  for (let index = 0; index + 1 < raw.length; index += 2)
    headers.append(raw[index] ?? "", raw[index + 1] ?? "");
  return headers;
}

/** Only errors are read whole, and no error needs more than its beginning. */
async function readText(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= maxErrorBody) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}

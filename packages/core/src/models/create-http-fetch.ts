// @io
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { ModelError, maxErrorBody } from "./model-error.ts";
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

/** The proxies that requests go through, as the agents of node:http take them. */
export type Proxies = Readonly<Record<string, string>>;

/**
 * The proxies that an environment names, in capitals or not; undefined without any. Servers on this machine are reached
 * directly, unless Node itself was configured to use the proxies for everything.
 */
export function readProxies(environment: Readonly<Record<string, string | undefined>>): Proxies | undefined {
  const textAt = (name: string): string | undefined =>
    environment[name.toLowerCase()]?.trim() || environment[name]?.trim() || undefined;
  const plain = textAt("HTTP_PROXY");
  const secure = textAt("HTTPS_PROXY") ?? plain;
  if (secure === undefined) return undefined;
  const direct = environment["NODE_USE_ENV_PROXY"] === "1" ? [] : ["localhost", "127.0.0.1", "::1", "[::1]"];
  return {
    ...(plain === undefined ? {} : { HTTP_PROXY: plain }),
    HTTPS_PROXY: secure,
    NO_PROXY: [textAt("NO_PROXY") ?? [], direct].flat().join(","),
  };
}

/**
 * A `fetch` over node:http that keeps connections open between requests until it is disposed of; several times faster
 * than the built-in one where answers are many and small. Redirects are answers like others: following one would hand on
 * the key. Bodies are read as async iterables.
 */
export function createHttpFetch(proxies?: Proxies): HttpFetch {
  // Before 22.21 the agents of Node know no proxies; its own client can be made to use them.
  if (proxies !== undefined && !process.allowedNodeEnvironmentFlags.has("--use-env-proxy"))
    return { fetch: globalThis.fetch, [Symbol.dispose]: () => undefined };
  const senders = new Map<string, Promise<Sender>>();
  let isOpen = true;

  function senderFor(protocol: string): Promise<Sender> {
    let sender = senders.get(protocol);
    if (sender === undefined) {
      sender = createSender(protocol === "https:", isOpen, proxies);
      senders.set(protocol, sender);
    }
    return sender;
  }

  return {
    async fetch(input, init = {}) {
      const url = input instanceof URL ? input : new URL(typeof input === "string" ? input : input.url);
      const signal = init.signal ?? undefined;
      const { send } = await senderFor(url.protocol);
      signal?.throwIfAborted();
      const body: Uint8Array =
        init.body instanceof Uint8Array
          ? init.body
          : Buffer.from(typeof init.body === "string" ? init.body : "");
      const headers = Object.fromEntries(new PlainHeaders(init.headers));
      headers["content-length"] = String(body.length);
      const method = init.method ?? "GET";
      // The part of a Response that is used here; a real one would wrap the body in a slower stream.
      const message = await exchange(() => send(url, { method, headers }), body, signal);
      const status = message.statusCode ?? 0;
      const response = {
        ok: status >= 200 && status < 300,
        status,
        headers: readHeaders(message.rawHeaders),
        body: message,
        text: async () => {
          // Only errors are read whole, and no error needs more than its beginning.

          const chunks: Buffer[] = [];
          let length = 0;
          for await (const chunk of message) {
            chunks.push(chunk);
            length += chunk.length;
            if (length >= maxErrorBody) break;
          }
          return Buffer.concat(chunks).toString("utf8");
        },
      };
      // Everything of a Response that is used behind this point is there; the rest is not.
      return response as unknown as Response;
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

interface Sender {
  readonly send: Send;
  readonly close: () => void;
}

/** Each protocol's code is loaded when it is first needed. */
async function createSender(isSecure: boolean, keepAlive: boolean, proxies?: Proxies): Promise<Sender> {
  const { Agent, request } = isSecure ? await import("node:https") : await import("node:http");
  const options = {
    ...(keepAlive ? keepOpen : {}),
    ...(proxies === undefined ? {} : { proxyEnv: { ...proxies } }),
  };
  try {
    const agent = new Agent(options);
    return {
      send: (url, init) => request({ ...partsOf(url), ...init, agent }),
      close: () => agent.destroy(),
    };
  } catch (error) {
    // The message of Node's error has the address in it, which may have a password in it.
    if (!isRecord(error) || error["code"] !== "ERR_PROXY_INVALID_CONFIG") throw error;
    throw new ModelError("invalid-request", "The address of the proxy cannot be used.", {
      advice: "Check HTTPS_PROXY and HTTP_PROXY; an address looks like http://proxy.example:8080.",
    });
  }
}

/**
 * An idle connection is closed after a while. As many are kept as agents may run at the same time in practice: with
 * fewer, most requests of a hundred children would open a connection of their own.
 */
const keepOpen = { keepAlive: true, scheduling: "lifo", maxFreeSockets: 256, timeout: 60_000 } as const;

/** What a request needs of an address; given the URL itself, Node takes it apart into all its parts each time. */
function partsOf({ protocol, hostname, port, pathname, search, username, password }: URL): RequestOptions {
  return {
    protocol,
    hostname: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
    port,
    path: `${pathname}${search}`,
    ...(username === "" && password === ""
      ? {}
      : { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }),
  };
}

/** A kept connection may have been closed by the other side just now; then, and only then, a fresh one is tried. */
async function exchange(
  open: () => ClientRequest,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  for (let isFirst = true; ; isFirst = false) {
    const request = open();
    try {
      // Sends the request and waits for the head of its answer. An abort ends the answer's body too; the `signal` option of
      // node:http would also end a connection that had been handed back already, with an error that nothing handles.
      return await new Promise((resolve, reject) => {
        let response: IncomingMessage | undefined;
        const abort = (): void => {
          (response ?? request).destroy(
            Object.assign(new Error("The request was aborted."), { name: "AbortError", code: "ABORT_ERR" }),
          );
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
    } catch (error) {
      signal?.throwIfAborted();
      const wasStale = request.reusedSocket && isRecord(error) && error["code"] === "ECONNRESET";
      if (!isFirst || !wasStale) throw error;
    }
  }
}

function readHeaders(raw: readonly string[]): PlainHeaders {
  const headers = new PlainHeaders();
  for (let index = 0; index + 1 < raw.length; index += 2)
    headers.append(raw[index] ?? "", raw[index + 1] ?? "");
  return headers;
}

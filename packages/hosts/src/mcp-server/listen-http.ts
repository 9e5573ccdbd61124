import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

export interface HttpListener {
  /** `http://127.0.0.1:port`. */
  readonly origin: string;
  readonly port: number;
  close(): Promise<void>;
}

export interface ListenOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  readonly token: string;
  readonly answer: (request: Request, sent: Promise<void>) => Promise<Response>;
  readonly log: (message: string) => void;
}

const maxBytes = 4 * 1024 * 1024;
const maxConnections = 128;

/** Serves on this machine only, and only the one that has the token. */
export async function listenHttp({ port, token, answer, log }: ListenOptions): Promise<HttpListener> {
  const server = createServer((incoming, outgoing) => {
    const { port: own } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
    const refusal = refuseHttp(incoming.headers, { port: own, token });
    if (refusal !== undefined) {
      if (refusal.status === 401) outgoing.setHeader("www-authenticate", "Bearer");
      return sendText(outgoing, refusal.status, refusal.message);
    }
    const origin = `http://127.0.0.1:${own}`;
    exchange(incoming, outgoing, { origin, maxBytes, answer }).catch((error: unknown) => {
      log(`A request failed: ${error instanceof Error ? error.message : String(error)}`);
      if (outgoing.headersSent) outgoing.destroy();
      else sendText(outgoing, 500, "Something went wrong.");
    });
  });
  server.maxConnections = maxConnections;
  await listen(server, port);
  server.on("error", (error) => log(`The server failed: ${error.message}`));
  const { port: own } = server.address() as AddressInfo; // As above.
  return {
    origin: `http://127.0.0.1:${own}`,
    port: own,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "another program listens there" : error.message;
      const advice = "Choose another port, or give none.";
      reject(new RetinueError("cannot-listen", `Port ${port} cannot be used: ${why}.`, { advice }));
    });
    server.listen(port, "127.0.0.1", () => resolve());
  });
}

interface HttpRefusal {
  readonly status: 401 | 403;
  readonly message: string;
}

interface GuardedHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly authorization?: string | undefined;
}

/**
 * Why a request is not served. Loopback is no authentication: any program of this machine reaches the port, and any web
 * page whose name was pointed here (DNS rebinding). So the names must be ours, and the token must be right.
 */
export function refuseHttp(
  { host, origin, authorization }: GuardedHeaders,
  { port, token }: { readonly port: number; readonly token: string },
): HttpRefusal | undefined {
  const names = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (host === undefined || !names.includes(host.toLowerCase())) {
    return { status: 403, message: `This server answers only to the names ${names.join(" and ")}.` };
  }
  if (origin !== undefined && !names.some((name) => origin === `http://${name}`)) {
    return { status: 403, message: "This server does not answer to web pages." };
  }
  const given = /^Bearer ([^\s]+)$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && isSame(given, token)) return undefined;
  return {
    status: 401,
    message: "The token is missing or wrong. Send the header `Authorization: Bearer <token>`.",
  };
}

/** Takes the same time wherever two texts differ, and whatever their lengths. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Answers a request of Node's server with the response of a function that speaks the web's types. */
async function exchange(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  {
    origin,
    maxBytes,
    answer,
  }: {
    readonly origin: string;
    readonly maxBytes: number;
    /** `sent` resolves when the response was sent or the client has gone. */
    readonly answer: (request: Request, sent: Promise<void>) => Promise<Response>;
  },
): Promise<void> {
  const gone = new AbortController();
  const sent = Promise.withResolvers<void>();
  outgoing.once("close", () => {
    sent.resolve();
    if (!outgoing.writableFinished)
      gone.abort(new RetinueError("client-gone", "The client closed the connection."));
  });
  const body = await readBody(incoming, maxBytes);
  if (body === undefined) return sendText(outgoing, 413, `A request may have at most ${maxBytes} bytes.`);
  const method = incoming.method ?? "GET";
  const request = new Request(new URL(pathOf(incoming), origin), {
    method,
    headers: headersOf(incoming),
    signal: gone.signal,
    ...(method === "GET" || method === "HEAD" ? {} : { body }),
  });
  const response = await answer(request, sent.promise);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // A client that goes away ends the stream; that is no failure of ours.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => undefined);
}

function sendText(outgoing: ServerResponse, status: number, text: string): void {
  const headers = { "content-type": "text/plain; charset=utf-8", connection: "close" };
  outgoing.writeHead(status, headers).end(`${text}\n`);
}

/** Undefined as soon as there are too many bytes; what still comes is not read. */
async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<Buffer<ArrayBuffer> | undefined> {
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Only a path: a request line may also hold a whole address. */
function pathOf({ url = "/" }: IncomingMessage): string {
  return url.startsWith("/") && !url.startsWith("//") ? url : "/";
}

function headersOf({ headers }: IncomingMessage): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const each of [value ?? []].flat()) made.append(name, each);
  }
  return made;
}

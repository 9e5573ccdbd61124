import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { RetinueError } from "../../foundation/retinue-error.ts";

/** Answers a request of Node's server with the response of a function that speaks the web's types. */
export async function exchange(
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
    if (!outgoing.writableFinished) gone.abort(new RetinueError("client-gone", "The client closed the connection."));
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
  await send(outgoing, await answer(request, sent.promise));
}

export function sendText(outgoing: ServerResponse, status: number, text: string): void {
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

async function send(outgoing: ServerResponse, response: Response): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // A client that goes away ends the stream; that is no failure of ours.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => undefined);
}

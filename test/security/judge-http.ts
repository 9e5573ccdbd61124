import { request } from "node:http";
import { listenHttp } from "@retinue/hosts/mcp-server/listen-http.ts";
import { fieldsOf } from "./case-settings.ts";
import type { Answer, Fields, SecurityCase } from "./security-case.ts";

const token = "the-right-token-of-this-case";
const ownAddresses = new Set(["127.0.0.1", "localhost", "::1", "[::1]"]);

/** Sends the request of a case to the server that clients of agents reach over HTTP; what it serves is allowed. */
export async function judgeHttp({ context = {} }: SecurityCase): Promise<Answer> {
  const { bind, path } = context;
  // It listens on this machine and cannot be reported otherwise, so no client is served at another address.
  if (typeof bind === "string" && !ownAddresses.has(bind)) return "deny";
  const wished = portOf(context);
  const server = await listen(wished).catch(() => listen(0));
  try {
    const status = await send(server.port, {
      path: typeof path === "string" ? path : "/mcp",
      method: typeof context["method"] === "string" ? context["method"] : "POST",
      headers: headersOf(context, { wished, own: server.port }),
      body: bodyOf(context["body"]),
    });
    return status === 200 ? "allow" : "deny";
  } finally {
    await server.close();
  }
}

function listen(port: number) {
  return listenHttp({ port, token, answer: async () => new Response("served"), log: () => undefined });
}

/** The port that the case says the server has: by its own field, or in the Host of a client that is on this machine. */
function portOf({ port, host }: Fields): number {
  if (typeof port === "number") return port;
  const [, name = "", written] = /^(.*?)(?::(\d+))?$/.exec(typeof host === "string" ? host : "") ?? [];
  return written !== undefined && ownAddresses.has(name) ? Number(written) : 0;
}

function headersOf(
  context: Fields,
  { wished, own }: { readonly wished: number; readonly own: number },
): Record<string, string> {
  const { authorization, host, origin, referer, contentType, cookie } = context;
  const given = authorization === "valid" ? `Bearer ${token}` : authorization;
  const named = { authorization: given, host, origin, referer, cookie, "content-type": contentType };
  const all = Object.entries({ ...named, ...fieldsOf(context["headers"]) }).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  // Where the port was taken by another program, the case means the one that the server got instead.
  const moved = (value: string): string =>
    wished === 0 || wished === own ? value : value.replace(new RegExp(`:${wished}(?!\\d)`), `:${own}`);
  return Object.fromEntries(all.map(([name, value]) => [name, moved(value)]));
}

function bodyOf(body: unknown): string {
  if (body === undefined) return "{}";
  return typeof body === "string" ? body : JSON.stringify(body);
}

interface SentRequest {
  readonly path: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

function send(port: number, { path, method, headers, body }: SentRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end(method === "GET" || method === "HEAD" ? undefined : body);
  });
}

import { request } from "node:http";
import { listenHttp } from "../../src/apps/mcp-server/listen-http.ts";
import type { Answer, SecurityCase } from "./security-case.ts";

const token = "the-right-token-of-this-case";

/** Sends the request of a case to the server that clients of agents reach over HTTP; what it serves is allowed. */
export async function judgeHttp({ context = {} }: SecurityCase): Promise<Answer> {
  const server = await listenHttp({
    port: 0,
    token,
    answer: async () => new Response("served"),
    log: () => undefined,
  });
  try {
    const { authorization, host, origin, path } = context;
    const given = authorization === "valid" ? `Bearer ${token}` : authorization;
    const headers = Object.entries({ authorization: given, host, origin }).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string",
    );
    const status = await send(server.port, {
      path: typeof path === "string" ? path : "/mcp",
      headers: Object.fromEntries(headers),
    });
    return status === 200 ? "allow" : "deny";
  } finally {
    await server.close();
  }
}

function send(
  port: number,
  { path, headers }: { readonly path: string; readonly headers: Record<string, string> },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method: "POST", path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end("{}");
  });
}

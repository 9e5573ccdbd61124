import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A server on this machine that keeps what it is sent. */
export interface WebServer extends AsyncDisposable {
  readonly url: string;
  /** Whether a request has this text in its path or body; `connection` is every connection, whatever it carries. */
  got(wanted: string): boolean;
}

async function startWebServer(): Promise<WebServer> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    seen.push(`${request.method} ${request.url}\n${await text(request).catch(() => "")}`);
    response.end("ok\n");
  });
  server.on("connection", () => void seen.push("connection"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
  return {
    url: `http://127.0.0.1:${port}`,
    got: (wanted) => seen.some((each) => each.includes(wanted)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One server for each of these attacks, so that what it is sent can only come from that one. */
export interface WebServers extends AsyncDisposable {
  get(id: string): WebServer | undefined;
  /** The address of an attack's server, or one without a listener. */
  urlOf(id: string): string;
}

export async function startWebServers(ids: readonly string[]): Promise<WebServers> {
  const servers = new Map(await Promise.all(ids.map(async (id) => [id, await startWebServer()] as const)));
  return {
    get: (id) => servers.get(id),
    urlOf: (id) => servers.get(id)?.url ?? "http://127.0.0.1:9",
    async [Symbol.asyncDispose]() {
      await Promise.all([...servers.values()].map((server) => server[Symbol.asyncDispose]()));
    },
  };
}

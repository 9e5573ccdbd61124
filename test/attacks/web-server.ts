import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A server on this machine that keeps what it is sent. */
export interface WebServer extends AsyncDisposable {
  readonly url: string;
  /** Whether a request has this text in its path or body. */
  got(wanted: string): boolean;
}

export async function startWebServer(): Promise<WebServer> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    seen.push(`${request.method} ${request.url}\n${await text(request).catch(() => "")}`);
    response.end("ok\n");
  });
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

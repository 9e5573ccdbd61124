// @io
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** Waits on this machine for the browser to come back from a login. */
export interface CallbackListener extends AsyncDisposable {
  readonly redirectUri: string;
  /** What came back with the right state; anything else is turned away and not waited for any less. */
  receive(state: string, signal: AbortSignal): Promise<URLSearchParams>;
}

/** How long a browser has to read the page that it was answered with. */
const partingMs = 1_000;
const triedPorts = 5;

/** Listens on loopback addresses alone. */
export async function receiveCallback(port = 0): Promise<CallbackListener> {
  const { port: taken, servers } = await listenOnBoth(port);
  let waiting: { readonly state: string; readonly resolve: (found: URLSearchParams) => void } | undefined;
  for (const server of servers)
    server.on("request", (request, response) => {
      const found = readCallback(request);
      const isRight = waiting !== undefined && found?.get("state") === waiting.state;
      response.writeHead(isRight ? 200 : 400, {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'",
        "referrer-policy": "no-referrer",
        connection: "close",
      });
      response.end(isRight ? donePage : wrongPage);
      if (isRight && found !== undefined) waiting?.resolve(found);
    });
  return {
    redirectUri: `http://localhost:${taken}/callback`,
    async receive(state, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>();
      const stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      waiting = { state, resolve };
      return promise.finally(() => {
        waiting = undefined;
        signal.removeEventListener("abort", stop);
      });
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.close();
        server.closeIdleConnections();
        // One that sends nothing, or byte by byte, must not keep the process.
        setTimeout(() => server.closeAllConnections(), partingMs).unref();
        server.unref();
      }
    },
  };
}

/** What a request brings back; undefined where it is none of a browser that comes back, whatever it looks like. */
function readCallback({ method, url = "" }: IncomingMessage): URLSearchParams | undefined {
  const address = method === "GET" && url.startsWith("/") ? URL.parse(`http://localhost${url}`) : null;
  return address?.pathname === "/callback" ? address.searchParams : undefined;
}

const donePage =
  "<!doctype html><title>Retinue</title><p>The login is back in the terminal. You can close this page.";
const wrongPage = "<!doctype html><title>Retinue</title><p>This is not the login that is being waited for.";

/** Browsers may take `localhost` for either address, so nobody else may have the port on the other one. */
async function listenOnBoth(
  port: number,
): Promise<{ readonly port: number; readonly servers: readonly Server[] }> {
  for (let tried = 1; ; tried += 1) {
    const first = await listen(port, "127.0.0.1").catch((error: unknown) => {
      throw unusable(port, error);
    });
    const { port: taken } = first.address() as AddressInfo;
    try {
      return { port: taken, servers: [first, await listen(taken, "::1")] };
    } catch (error) {
      // A machine without the second address does with the first.
      if (errorCode(error) !== "EADDRINUSE") return { port: taken, servers: [first] };
      first.close();
      if (port !== 0 || tried === triedPorts) throw unusable(taken, error);
    }
  }
}

function unusable(port: number, error: unknown): RetinueError {
  const why = error instanceof Error ? error.message : String(error);
  return new RetinueError("mcp-login-failed", `The port ${port} cannot be listened on: ${why}.`, {
    advice: "Choose another `oauth.callbackPort`, or leave it out.",
  });
}

function listen(port: number, host: string): Promise<Server> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000 });
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  server.once("error", reject);
  server.listen(port, host, () => resolve(server));
  return promise;
}

// @io
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** Waits on this machine for the browser to come back from a login. */
export interface CallbackListener extends AsyncDisposable {
  readonly redirectUri: string;
  /** What came back with the right state; anything else is turned away and not waited for any less. */
  receive(state: string, signal: AbortSignal): Promise<URLSearchParams>;
}

/** Listens on a loopback address alone. */
export async function receiveCallback(port = 0): Promise<CallbackListener> {
  const first = await listen(port, "127.0.0.1");
  const { port: taken } = first.address() as AddressInfo;
  // Browsers may take `localhost` for either address; a machine without the second one does with the first.
  const second = await listen(taken, "::1").catch(() => undefined);
  const servers = [first, ...(second === undefined ? [] : [second])];
  return {
    redirectUri: `http://localhost:${taken}/callback`,
    async receive(state, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>();
      const stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      for (const server of servers) {
        server.on("request", (request, response) => {
          const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
          const isOurs = request.method === "GET" && pathname === "/callback";
          const isRight = isOurs && searchParams.get("state") === state;
          response.writeHead(isRight ? 200 : 400, {
            "content-type": "text/html; charset=utf-8",
            "cache-control": "no-store",
            "content-security-policy": "default-src 'none'",
            "referrer-policy": "no-referrer",
            connection: "close",
          });
          response.end(isRight ? donePage : wrongPage);
          if (isRight) resolve(searchParams);
        });
      }
      return promise.finally(() => signal.removeEventListener("abort", stop));
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close();
      for (const server of servers) server.closeIdleConnections();
    },
  };
}

const donePage =
  "<!doctype html><title>Retinue</title><p>The login is back in the terminal. You can close this page.";
const wrongPage = "<!doctype html><title>Retinue</title><p>This is not the login that is being waited for.";

function listen(port: number, host: string): Promise<Server> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  server.once("error", (error) =>
    reject(
      new RetinueError("mcp-login-failed", `The port ${port} cannot be listened on: ${error.message}.`, {
        advice: "Choose another `oauth.callbackPort`, or leave it out.",
      }),
    ),
  );
  server.listen(port, host, () => resolve(server));
  return promise;
}

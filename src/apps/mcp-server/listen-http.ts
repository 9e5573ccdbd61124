import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { exchange, sendText } from "./http-exchange.ts";
import { refuseHttp } from "./http-guard.ts";

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

/** Serves on this machine only, and only whoever has the token. */
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

import type { McpServer } from "@modelcontextprotocol/server";
import type { AgentHub } from "./agent-hub.ts";
import { createServerFactory } from "./create-server-factory.ts";
import { createHttpSessions } from "./http-sessions.ts";
import { listenHttp } from "./listen-http.ts";
import type { Sdk } from "./serve-flight.ts";

export interface ServeOptions {
  readonly hub: AgentHub;
  readonly version: string;
  readonly log: (message: string) => void;
}

/** A server that is there for its clients; `done` resolves when it has none left to wait for. */
export interface Serving {
  readonly done: Promise<void>;
  close(): Promise<void>;
}

/** Speaks with the one client at the other end of stdin and stdout, until that closes them. */
export async function serveProcess(options: ServeOptions): Promise<Serving> {
  const [{ serveStdio, StdioServerTransport }, factory] = await Promise.all([
    import("@modelcontextprotocol/server/stdio"),
    loadFactory(options),
  ]);
  const wire = new StdioServerTransport();
  const done = Promise.withResolvers<void>();
  const handle = serveStdio(factory.make, { transport: wire, onerror: logErrors(options) });
  const close = wire.onclose;
  wire.onclose = () => {
    close?.();
    done.resolve();
  };
  return { done: done.promise, close: handle.close };
}

/** Sessions that no one uses are looked for this often. */
const sweepMs = 60_000;

/** Serves any number of clients on this machine, until it is closed. */
export async function serveHttp(
  options: ServeOptions & { readonly port: number; readonly token: string },
): Promise<Serving & { readonly url: string }> {
  const { sdk, make } = await loadFactory(options);
  const sessions = createHttpSessions({
    sdk,
    factory: make,
    now: () => performance.now(),
    onError: logErrors(options),
  });
  const { port, token, log } = options;
  const listener = await listenHttp({ port, token, log, answer: sessions.answer });
  const timer = setInterval(sessions.sweep, sweepMs).unref();
  const done = Promise.withResolvers<void>();
  return {
    url: `${listener.origin}/mcp`,
    done: done.promise,
    async close() {
      clearInterval(timer);
      await sessions.close();
      await listener.close();
      done.resolve();
    },
  };
}

async function loadFactory({ hub, version }: ServeOptions): Promise<{
  readonly sdk: Sdk;
  readonly make: (context: { readonly era: "legacy" | "modern" }) => McpServer;
}> {
  const [sdk, leadsTeam] = await Promise.all([import("@modelcontextprotocol/server"), hub.leadsTeam()]);
  return { sdk, make: createServerFactory({ sdk, hub, version, leadsTeam }) };
}

function logErrors({ log }: ServeOptions): (error: Error) => void {
  return ({ message }) => log(message);
}

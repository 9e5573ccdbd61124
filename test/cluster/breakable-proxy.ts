import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** The way to a server, which can be cut and joined again. */
export interface BreakableProxy {
  readonly url: string;
  /** Ends all connections and refuses new ones. */
  cut(): Promise<void>;
  join(): Promise<void>;
}

export async function startBreakableProxy(url: string): Promise<BreakableProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let server: Server;
  const listen = async (port: number): Promise<number> => {
    server = createServer((near) => {
      const far = connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    return typeof address === "object" ? (address?.port ?? 0) : 0;
  };
  const port = await listen(0);
  const own = new URL(url);
  own.port = String(port);
  return {
    url: own.href,
    async cut() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async join() {
      await listen(port);
    },
  };
}

import { connect, createServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { receiveCallback } from "./log-in.ts";

/** Sends these bytes and gives what comes back until the other side closes. */
async function send(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(bytes);
  return text(socket);
}

async function open(signal = AbortSignal.timeout(60_000)) {
  const listener = await receiveCallback();
  onTestFinished(() => listener[Symbol.asyncDispose]());
  const received = listener.receive("right", signal);
  received.catch(() => undefined);
  return { listener, received, port: Number(new URL(listener.redirectUri).port) };
}

describe("[MCP-4] waiting for the browser", () => {
  test.each([
    "GET //:x HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /callback?state=wrong&code=1 HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /callback?code=1 HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /other?state=right&code=1 HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST /callback?state=right&code=1 HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
    "\u0016\u0003\u0001 no HTTP at all\r\n\r\n",
  ])("turns away %j and goes on waiting", async (bytes) => {
    const { listener, received, port } = await open();
    expect(await send(port, bytes)).toMatch(/^HTTP\/1\.1 400 /);
    const page = await fetch(`${listener.redirectUri}?state=right&code=7`);
    expect([page.status, (await received).get("code")]).toEqual([200, "7"]);
  });

  test("a client that sends nothing more does not keep the process", async () => {
    const { listener, received, port } = await open();
    const slow = connect(port, "127.0.0.1");
    const closed = new Promise((resolve) => slow.once("close", resolve));
    await new Promise((resolve) => slow.write("GET /callback", resolve));
    await fetch(`${listener.redirectUri}?state=right&code=7`);
    await received;
    await listener[Symbol.asyncDispose]();
    await closed;
  });

  test("a port that another program has on either address is not used", async () => {
    const other = createServer();
    onTestFinished(() => void other.close());
    const port = await listen(other, "::1").catch(() => listen(other, "127.0.0.1"));
    await expect(receiveCallback(port)).rejects.toMatchObject({
      code: "mcp-login-failed",
      message: expect.stringContaining(`Cannot listen on port ${port}`),
      advice: expect.stringContaining("oauth.callbackPort"),
    });
  });
});

function listen(server: Server, host: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once("error", reject);
  server.listen(0, host, () => {
    const address = server.address();
    resolve(typeof address === "object" && address !== null ? address.port : 0);
  });
  return promise;
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { createHttpFetch, readProxies } from "./create-http-fetch.ts";

const opened: { close(): void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  opened.push({
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** A server that says how it was asked, and which credentials for the server it got. */
async function startTarget({ secure = false } = {}): Promise<number> {
  const server = secure ? createSecureServer({ key, cert }) : createServer();
  server.on("request", (incoming, response) => {
    incoming.resume().on("end", () => {
      if (!String(incoming.url).endsWith("/v1/messages")) return void response.end(String(incoming.url));
      response.writeHead(200, { "content-type": "text/event-stream", "request-id": "req_1" });
      const events = [
        { type: "message_start", message: { id: "m", model: "x", usage: { input_tokens: 1 } } },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
        { type: "message_stop" },
      ];
      response.end(
        events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
      );
    });
  });
  return listen(server);
}

interface Proxy {
  readonly port: number;
  /** Method, target and credentials of each request to the proxy. */
  readonly asked: string[];
}

/** A forward proxy that takes every name for this machine. */
async function startProxy({ refuses = false } = {}): Promise<Proxy> {
  const asked: string[] = [];
  const note = (method = "", url = "", credentials = ""): void => {
    asked.push(`${method} ${url} ${credentials}`.trim());
  };
  const server = createServer((incoming, response) => {
    note(incoming.method, incoming.url, incoming.headers["proxy-authorization"]);
    const { port, pathname } = new URL(String(incoming.url));
    const { method = "", headers } = incoming;
    const onward = request({ host: "127.0.0.1", port, path: pathname, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  server.on("connect", (incoming, client) => {
    note("CONNECT", incoming.url, incoming.headers["proxy-authorization"]);
    if (refuses) return void client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const target = connect(Number(new URL(`http://${incoming.url}`).port), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      target.pipe(client).pipe(target);
    });
    target.on("error", () => client.destroy());
    client.on("error", () => target.destroy());
  });
  return { port: await listen(server), asked };
}

async function read(url: string, environment: Record<string, string>): Promise<string> {
  using http = createHttpFetch(readProxies(environment));
  return (await http.fetch(url)).text();
}

describe("readProxies [MDL-3]", () => {
  const here = "localhost,127.0.0.1,::1,[::1]";
  test.each<[Record<string, string>, ReturnType<typeof readProxies>]>([
    [{}, undefined],
    [{ NO_PROXY: "x", HTTPS_PROXY: " " }, undefined],
    [{ HTTPS_PROXY: "http://p:1" }, { HTTPS_PROXY: "http://p:1", NO_PROXY: here }],
    [{ HTTP_PROXY: "http://p:1" }, { HTTP_PROXY: "http://p:1", HTTPS_PROXY: "http://p:1", NO_PROXY: here }],
    [
      { http_proxy: "http://a:1", HTTP_PROXY: "http://b:1", https_proxy: "http://c:1", no_proxy: "x,.y" },
      { HTTP_PROXY: "http://a:1", HTTPS_PROXY: "http://c:1", NO_PROXY: `x,.y,${here}` },
    ],
    [
      { HTTPS_PROXY: "http://p:1", NO_PROXY: "x", NODE_USE_ENV_PROXY: "1" },
      { HTTPS_PROXY: "http://p:1", NO_PROXY: "x" },
    ],
  ])("%j", (environment, expected) => {
    expect(readProxies(environment)).toEqual(expected);
  });
});

describe("a request through a real proxy [MDL-3]", () => {
  test.each(["HTTP_PROXY", "http_proxy"])("%s is used for http, with its credentials", async (name) => {
    const [port, proxy] = await Promise.all([startTarget(), startProxy()]);
    const address = `http://user:word@127.0.0.1:${proxy.port}`;
    expect(await read(`http://models.test:${port}/a`, { [name]: address })).toBe("/a");
    const credentials = `Basic ${Buffer.from("user:word").toString("base64")}`;
    expect(proxy.asked).toEqual([`GET http://models.test:${port}/a ${credentials}`]);
  });

  test.each(["NO_PROXY", "no_proxy"])("what %s names is asked directly", async (name) => {
    const [port, proxy] = await Promise.all([startTarget(), startProxy()]);
    const environment = { HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, NODE_USE_ENV_PROXY: "1" };
    await read(`http://127.0.0.1:${port}/a`, environment);
    expect(proxy.asked).toHaveLength(1);
    await read(`http://127.0.0.1:${port}/a`, { ...environment, [name]: "127.0.0.1" });
    expect(proxy.asked).toHaveLength(1);
  });

  test.each(["127.0.0.1", "localhost"])("a server on this machine, %s, is asked directly", async (host) => {
    const [port, proxy] = await Promise.all([startTarget(), startProxy()]);
    expect(await read(`http://${host}:${port}/a`, { HTTP_PROXY: `http://127.0.0.1:${proxy.port}` })).toBe(
      "/a",
    );
    expect(proxy.asked).toEqual([]);
  });

  test("an address that is none is explained without what it says, which may be a password", async () => {
    const environment = { HTTPS_PROXY: "http://user:secret@[proxy" };
    const error: Error = await read("https://models.test/", environment).catch((error) => error);
    expect(error).toMatchObject({ code: "invalid-request", mayPass: false });
    expect(`${error.message} ${error.stack} ${String(error.cause)}`).not.toContain("secret");
  });
});

test("a hundred requests at a time keep their connections for the hundred that follow [MDL-3]", async () => {
  let connections = 0;
  let waiting: (() => void)[] = [];
  // Answers none before all have come, so that each needs a connection of its own.
  const server = createServer((_, response) => {
    waiting.push(() => response.end("ok"));
    if (waiting.length < 100) return;
    for (const answer of waiting) answer();
    waiting = [];
  });
  server.on("connection", () => {
    connections += 1;
  });
  const url = `http://127.0.0.1:${await listen(server)}/`;
  using http = createHttpFetch();
  for (let round = 0; round < 3; round += 1)
    await Promise.all(Array.from({ length: 100 }, async () => (await http.fetch(url)).text()));
  expect(connections).toBeLessThan(150);
});

test("the path, the query and the credentials of an address reach the server as they are written [MDL-3]", async () => {
  const asked: unknown[] = [];
  const server = createServer(({ url, headers }, response) => {
    asked.push([url, headers.authorization, headers.host]);
    response.end();
  });
  const port = await listen(server);
  using http = createHttpFetch();
  await (await http.fetch(`http://us%20er:wo%3Ard@127.0.0.1:${port}/a%20b/c?d=e%26f&g`)).text();
  const credentials = `Basic ${Buffer.from("us er:wo:rd").toString("base64")}`;
  expect(asked).toEqual([["/a%20b/c?d=e%26f&g", credentials, `127.0.0.1:${port}`]]);
});

/** Asks a model in a process of its own: Node reads its certificates only when it starts. */
async function askModel(baseUrl: string, environment: Record<string, string>): Promise<string> {
  const factory = JSON.stringify(new URL("./model-factory.ts", import.meta.url).href);
  const gate = JSON.stringify(new URL("./request-gate.ts", import.meta.url).href);
  const program = `
    const { createModelFactory } = await import(${factory});
    const { createCoolDowns } = await import(${gate});
    const clock = { now: () => 0, sleep: async () => undefined };
    const environment = process.env;
    const random = () => 0;
    const factory = createModelFactory({ environment, coolDowns: createCoolDowns(clock, random), clock, random });
    const request = { system: [], tools: [], messages: [{ role: "user", content: "hi" }] };
    try {
      const model = await factory.model({ id: "claude-sonnet-5" });
      for await (const { type } of model.stream(request, { signal: new AbortController().signal })) console.log(type);
    } catch (error) {
      console.log(error.code + ": " + error.message);
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: {
      PATH: process.env["PATH"],
      ANTHROPIC_API_KEY: "k",
      ANTHROPIC_BASE_URL: baseUrl,
      CLAUDE_CODE_MAX_RETRIES: "0",
      ...environment,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return printed.trim();
}

const answered = "message-started\nmessage-ended";

describe("a model behind certificates of one's own [MDL-3]", () => {
  async function withCertificates<T>(work: (environment: { NODE_EXTRA_CA_CERTS: string }) => Promise<T>) {
    const folder = mkdtempSync(join(tmpdir(), "certificates-"));
    try {
      const file = join(folder, "ca.pem");
      writeFileSync(file, cert);
      return await work({ NODE_EXTRA_CA_CERTS: file });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  test("NODE_EXTRA_CA_CERTS makes them trusted", async () => {
    const port = await startTarget({ secure: true });
    const url = `https://127.0.0.1:${port}`;
    expect(await askModel(url, {})).toContain("untrusted-certificate");
    expect(await withCertificates((more) => askModel(url, more))).toBe(answered);
  });

  test.each([
    "HTTPS_PROXY",
    "https_proxy",
  ])("%s is used as a tunnel, on which they count as well", async (name) => {
    const [port, proxy] = await Promise.all([startTarget({ secure: true }), startProxy()]);
    const url = `https://localhost.:${port}`;
    const environment = { [name]: `http://user:word@127.0.0.1:${proxy.port}` };
    expect(await askModel(url, environment)).toContain("untrusted-certificate");
    expect(await withCertificates((more) => askModel(url, { ...environment, ...more }))).toBe(answered);
    const credentials = `Basic ${Buffer.from("user:word").toString("base64")}`;
    expect(proxy.asked).toEqual(Array(2).fill(`CONNECT localhost.:${port} ${credentials}`));
  });

  test("a proxy that refuses is named in the error", async () => {
    const { port } = await startProxy({ refuses: true });
    expect(await askModel("https://models.test", { HTTPS_PROXY: `http://127.0.0.1:${port}` })).toMatch(
      /^connection-failed: Cannot reach models\.test \(.*407/,
    );
  });
});

/** Signed by itself; of no use for anything but this test. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzbB8QzQnxIhUY97b
FxZb8UrRO6oCVbnTs4yhE829Rj6hRANCAASvrwSPm2fMWoOmUKATroRVr9BCJeN5
77od3KAzIlPhuMsTJJzNtE908H6bd0TxMsT2xRFNguI9KOK3NWrOf1Gi
-----END PRIVATE KEY-----`;
const cert = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUcX6u7BcT83XqV6g7orXQDLSiQugwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTIyMzUxMFoYDzIxMjYxMDIy
MjIzNTEwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASvrwSPm2fMWoOmUKATroRVr9BCJeN577od3KAzIlPhuMsTJJzNtE90
8H6bd0TxMsT2xRFNguI9KOK3NWrOf1Gio28wbTAdBgNVHQ4EFgQUbIcZSrJr0DtA
m91keFXsO6HXVj4wHwYDVR0jBBgwFoAUbIcZSrJr0DtAm91keFXsO6HXVj4wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAIwpAsddtDUsVQvnbSDzkI9Ohfr0PalYGT2QSaTeCoQ1AiEA
ox8iw4gmK1XbxNdZPxAqK+mXxZ1h0Kk0sjrQWMLKJTc=
-----END CERTIFICATE-----`;

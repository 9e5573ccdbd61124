import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import { afterEach, expect, test } from "vitest";
import { connectServers } from "./connect-servers.ts";
import { createBoundedFetch } from "./create-bounded-fetch.ts";
import type { McpConnections, McpServerState } from "./mcp-connections.ts";

interface Message {
  readonly id?: number;
  readonly method: string;
}

const free = { signal: new AbortController().signal };
let server: Server | undefined;
let connections: McpConnections | undefined;
let seen: { readonly message: Message; readonly headers: IncomingMessage["headers"] }[] = [];

afterEach(async () => {
  await connections?.[Symbol.asyncDispose]();
  server?.closeAllConnections();
  server?.close();
  [server, connections, seen] = [undefined, undefined, []];
});

/** A server whose sessions are numbered; `onCall` answers calls, everything else is as the protocol has it. */
async function listen(
  onCall: (message: Message, session: string, response: ServerResponse) => void,
): Promise<string> {
  let sessions = 0;
  server = createServer(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const message = JSON.parse((await request.toArray()).join("")) as Message;
    seen.push({ message, headers: request.headers });
    const session = String(request.headers["mcp-session-id"] ?? `s${++sessions}`);
    if (message.id === undefined) return response.writeHead(202).end();
    if (message.method === "tools/call") return onCall(message, session, response);
    const initialized = {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "web", version: "1" },
    };
    return answer(
      response,
      message,
      message.method === "initialize" ? initialized : { tools: [{ name: "look" }] },
      session,
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

function answer(response: ServerResponse, { id }: Message, result: unknown, session: string): void {
  response.writeHead(200, { "content-type": "application/json", "mcp-session-id": session });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

async function connect(
  transport: Partial<McpTransport> & { readonly url: string },
): Promise<McpServerState | undefined> {
  const full = { type: "http", headers: {}, ...transport } as McpTransport;
  connections = connectServers([{ name: "web", scope: "user", transport: full }], {
    environment: { PATH: process.env["PATH"], WHO: "me" },
    directory: tmpdir(),
    startLimitMs: 20_000,
    callLimitMs: 20_000,
    maxResultCharacters: 1_000,
  });
  await connections.ready;
  return connections.states()[0];
}

const calls = () => seen.filter(({ message }) => message.method === "tools/call");

test("[MCP-2] a call that is refused because the session has expired is sent once more in a new one", async () => {
  const url = await listen((message, session, response) => {
    if (session === "s1") response.writeHead(404).end("no such session");
    else answer(response, message, { content: [{ type: "text", text: session }] }, session);
  });
  await connect({ url });
  expect(await connections?.call("web", "look", {}, free)).toEqual({ text: "s2", isError: false });
  expect(calls()).toHaveLength(2);
});

test("[MCP-2] a server that knows no session at all is asked twice and not for ever", async () => {
  const url = await listen((_message, _session, response) => response.writeHead(404).end("no such session"));
  await connect({ url });
  expect(await connections?.call("web", "look", {}, free)).toMatchObject({ isError: true });
  expect(calls()).toHaveLength(2);
});

test("[MCP-2] a call whose connection breaks before its answer is an error and is not repeated", async () => {
  const url = await listen((_message, _session, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(": nothing more\n\n");
  });
  await connect({ url });
  const broken = await connections?.call("web", "look", {}, free);
  expect(broken).toMatchObject({ isError: true, text: expect.stringContaining("before it answered") });
  expect(calls()).toHaveLength(1);
});

test("[MCP-1] every request carries the configured headers and those that the helper prints", async () => {
  const url = await listen((message, session, response) =>
    answer(response, message, { content: [] }, session),
  );
  const headersHelper = `printf '{"x-token":"%s","x-both":"helper","x-server":"%s"}' "$WHO" "$CLAUDE_CODE_MCP_SERVER_NAME"`;
  await connect({ url, headers: { "x-fixed": "1", "x-both": "file" }, headersHelper });
  await connections?.call("web", "look", {}, free);
  expect(calls()[0]?.headers).toMatchObject({
    "x-fixed": "1",
    "x-token": "me",
    "x-both": "helper",
    "x-server": "web",
  });
});

test.each([
  ["exit 3", "ended with 3"],
  ["echo hello", "did not print JSON"],
  ["echo '[1]'", "is not an object"],
  [`echo '{"a":1}'`, "is not a string"],
])("[MCP-1] a helper that does %j fails its server and says why", async (headersHelper, reason) => {
  const state = await connect({ url: "http://127.0.0.1:9/", headersHelper });
  expect(state?.status).toMatchObject({ type: "failed", reason: expect.stringContaining(reason) });
});

test("[MCP-1] an address without a listener, or that is none, is a failed server", async () => {
  const url = await listen(() => undefined);
  server?.close();
  expect((await connect({ url }))?.status).toMatchObject({
    reason: expect.stringContaining("ECONNREFUSED"),
  });
  expect((await connect({ url: "not a url" }))?.status).toMatchObject({
    reason: expect.stringContaining("not a URL"),
  });
});

test("[MCP-1] a name and a word in the address are sent as a header, and no failure shows them", async () => {
  const url = await listen((_message, _session, response) =>
    response.writeHead(500).end("no: pass-word, tok-tok"),
  );
  const state = await connect({ url: `${url.replace("//", "//anna:pass-word@")}?key=tok-tok` });
  expect(state?.status).toMatchObject({ type: "connected" });
  expect(seen[0]?.headers.authorization).toBe(`Basic ${Buffer.from("anna:pass-word").toString("base64")}`);
  const failed = await connections?.call("web", "look", {}, free);
  expect(failed).toMatchObject({ isError: true, text: expect.stringContaining("no: …, …") });
});

test.each([
  ["application/json", "a".repeat(500), false],
  ["application/json", `${"a".repeat(60)}\n${"a".repeat(60)}`, false],
  ["text/event-stream", `data: ${"a".repeat(500)}`, false],
  ["text/event-stream", `data: ${"a".repeat(60)}\n\n`.repeat(50), true],
])("[MCP-1] an answer of %s is read only while no message in it is too long", async (type, text, isGood) => {
  server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": type });
    for (const letter of text.match(/[\s\S]{1,20}/g) ?? []) response.write(letter);
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const bounded = createBoundedFetch(100);
  const read = (await bounded(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).text();
  if (isGood) expect(await read).toBe(text);
  else await expect(read).rejects.toThrow("more than 100 bytes");
});

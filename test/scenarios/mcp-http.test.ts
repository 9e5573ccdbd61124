import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  call,
  connectHttp,
  createMcpStage,
  createSharedStage,
  type HttpServer,
  read,
  startHttp,
} from "./mcp-stage.ts";
import type { AtEnd } from "./run-command.ts";

const child = (task: string, step: ScriptedStep): Step => ({
  match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(task),
  ...step,
});

const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
}

/** A request as written, whatever its headers; the web's own functions would not send a foreign Host. */
function send(
  { url, token }: HttpServer,
  { headers = {}, method = "POST", path = "/mcp", body = initialize }: Sent,
): Promise<{ readonly status: number; readonly text: string }> {
  const { port } = new URL(url);
  const usual = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, method, path, headers: { ...usual, ...headers } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(method === "GET" ? undefined : body);
  });
}

describe("[MCP-3] over HTTP no one is served without the token, or under a foreign name", () => {
  const ends: (() => void | PromiseLike<void>)[] = [];
  const atEnd: AtEnd = (end) => void ends.unshift(end);
  let server: HttpServer;
  beforeAll(async () => {
    server = await startHttp(await createSharedStage(atEnd), {}, atEnd);
  });
  afterAll(async () => {
    for (const end of ends) await end();
  });

  test.each<[string, Sent, number]>([
    ["no token", { headers: { authorization: "" } }, 401],
    ["a wrong token", { headers: { authorization: "Bearer 0123456789abcdef" } }, 401],
    ["another scheme", { headers: { authorization: "Basic eDp5" } }, 401],
    ["a foreign Host", { headers: { host: "rebind.evil.test" } }, 403],
    ["a Host with another port", { headers: { host: "127.0.0.1:1" } }, 403],
    ["a foreign Origin", { headers: { origin: "http://evil.test" } }, 403],
    ["the Origin of a sandboxed page", { headers: { origin: "null" } }, 403],
    ["another path", { path: "/session/x/shell" }, 404],
    ["an unknown session", { headers: { "mcp-session-id": "00000000-0000-0000-0000-000000000000" } }, 404],
    ["no JSON", { body: "{" }, 400],
    ["another type of content", { headers: { "content-type": "text/plain" } }, 415],
    ["a request before the beginning", { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }, 400],
    ["a stream without a session", { method: "GET" }, 400],
    ["a request that is too long", { body: `{"x":"${"x".repeat(5_000_000)}"}` }, 413],
    ["a proper beginning", {}, 200],
    ["the other name of this machine", {}, 200],
  ])("%s", async (name, sent, status) => {
    const { port } = new URL(server.url);
    const host: Record<string, string> =
      name === "the other name of this machine" ? { host: `localhost:${port}` } : {};
    // A server that does not read a body to its end may close the connection before its answer is read.
    const answer = await send(server, { ...sent, headers: { ...sent.headers, ...host } }).catch(
      (error: NodeJS.ErrnoException) => ({ status: status === 413 ? 413 : 0, text: String(error.code) }),
    );
    expect(answer.status).toBe(status);
    if (status === 401 || status === 403) expect(answer.text).not.toContain(server.token);
  });

  test("a token of the environment is taken, not printed, and kept from what agents run", async () => {
    const token = "a-token-of-the-environment";
    const calls = [{ name: "Bash", input: { command: 'echo "[$RETINUE_MCP_TOKEN]"', description: "x" } }];
    const stage = await createMcpStage([
      child("show the token", { calls }),
      child("show the token", { text: "Reported." }),
    ]);
    mkdirSync(join(stage.home, ".claude"), { recursive: true });
    writeFileSync(
      join(stage.home, ".claude", "settings.json"),
      JSON.stringify({ permissions: { allow: ["Bash(echo *)"] } }),
    );
    const server = await startHttp(stage, { RETINUE_MCP_TOKEN: token });
    const client = await connectHttp(server);
    await call(client, "spawn_agent", { prompt: "show the token" });
    const received = JSON.stringify(stage.provider.requests.at(-1)?.body["messages"]);
    expect(received).toContain("[]");
    expect(received).not.toContain(token);
  });

  test("a connection that is gone stops the agent of its call", async () => {
    const stage = await createMcpStage([child("wait long", { failure: "stall" })]);
    const server = await startHttp(stage);
    const headers = {
      authorization: `Bearer ${server.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const begun = await fetch(server.url, { method: "POST", headers, body: initialize });
    const id = begun.headers.get("mcp-session-id") ?? "";
    const leave = new AbortController();
    const params = {
      name: "spawn_agent",
      arguments: { agent: "Explore", prompt: "wait long", name: "staller" },
      _meta: { progressToken: 1 },
    };
    const calling = await fetch(server.url, {
      method: "POST",
      headers: { ...headers, "mcp-session-id": id },
      body: JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params }),
      signal: leave.signal,
    });
    const { value } = (await calling.body?.getReader().read()) ?? {};
    expect(new TextDecoder().decode(value)).toContain("notifications/progress");
    leave.abort();
    const client = await connectHttp(server);
    const { data } = await call(client, "agent_output", { agent_id: "staller", timeout_ms: 20_000 });
    expect(data).toMatchObject({ state: "stopped" });
  });

  test("a call cannot be continued by a state that the server did not give", async () => {
    const client = await connectHttp(server, { era: "modern" });
    const forged = { name: "spawn_agent", arguments: { prompt: "x" }, requestState: "made-up" };
    const { isError, text } = read(await client.callTool(forged));
    expect({ isError, text }).toEqual({ isError: true, text: expect.stringContaining("This call is over") });
  });

  test("a polite request to end stops the agents and the server", async () => {
    const stage = await createMcpStage([child("wait long", { failure: "stall" })]);
    const server = await startHttp(stage);
    const client = await connectHttp(server);
    const started = Promise.withResolvers<void>();
    call(client, "spawn_agent", { prompt: "wait long" }, { onprogress: () => started.resolve() }).catch(
      () => undefined,
    );
    await started.promise;
    const ended = new Promise((resolve) => server.child.once("exit", resolve));
    server.child.kill("SIGTERM");
    expect(await ended).toBe(143);
  });
});

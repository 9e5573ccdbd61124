import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { HookHandler } from "@retinue/config/hooks/hook-rule.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHookRunner, type HookRunnerOptions } from "./hook-runner.ts";

interface Received {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const received: Received[] = [];
let origin: string;

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  received.push({ url: request.url ?? "", headers: request.headers, body });
  answer(request.url ?? "", response);
});

function answer(url: string, response: ServerResponse): void {
  switch (url) {
    case "/deny":
      response.end('{"decision": "block", "reason": "by the server"}');
      return;
    case "/empty":
      response.writeHead(204).end();
      return;
    case "/half":
      response.end('{"decision": "bl');
      return;
    case "/error":
      response.writeHead(500).end('{"decision": "approve"}');
      return;
    case "/redirect":
      response.writeHead(307, { location: "/deny" }).end();
      return;
    case "/huge":
      response.write("x".repeat(2_000_000));
      response.end();
      return;
    case "/cut":
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => response.destroy());
      return;
    case "/trickle":
      response.write("{");
      return;
    default:
      // Never answers.
      return;
  }
}

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server that listens on a port has an address of this kind.
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function guard(handler: Partial<HookHandler>, more: Partial<HookRunnerOptions> = {}) {
  await using hooks = createHookRunner({
    rules: [
      { hook: { event: "PreToolUse", handler: { type: "http", ...handler } }, origin: { type: "settings" } },
    ],
    session: { sessionId: "s-1", transcript: "/t" },
    projectDirectory: "/",
    environment: { TOKEN: "secret-1", OTHER: "secret-2" },
    newId: () => "id",
    ...more,
  });
  const call = { tool: "Bash", input: { command: "ls" }, callId: "c-1" };
  return await hooks.fire("PreToolUse", call, { signal: new AbortController().signal, cwd: "/" });
}

describe("[HKS-7] a hook over http", () => {
  test("posts the event and obeys the answer", async () => {
    expect(await guard({ url: `${origin}/deny` })).toMatchObject({ type: "deny", reason: "by the server" });
    const last = received.at(-1);
    expect(JSON.parse(last?.body ?? "")).toMatchObject({ hook_event_name: "PreToolUse", tool: "Bash" });
    expect(last?.headers["content-type"]).toBe("application/json");
  });

  test("that answers nothing decides nothing", async () => {
    expect(await guard({ url: `${origin}/empty` })).toMatchObject({ type: "none", failures: [] });
  });

  test.each<[string, string, RegExp, number?]>([
    ["is slow", "/silent", /did not answer within 0\.2 s/, 0.2],
    ["never ends its answer", "/trickle", /did not answer within 0\.2 s/, 0.2],
    ["redirects", "/redirect", /answered 307, and redirects are not followed/],
    ["fails", "/error", /answered 500/],
    ["answers too much", "/huge", /more than 1000000 bytes/],
    ["answers half JSON", "/half", /JSON that is not complete/],
    ["breaks off", "/cut", /terminated|aborted|closed|reset/i],
  ])("whose server %s lets nothing through", async (_title, path, why, timeout = 20) => {
    const outcome = await guard({ url: `${origin}${path}`, timeout });
    expect(outcome.type).toBe("deny");
    expect(outcome.reason).toMatch(why);
    const tolerated = await guard({ url: `${origin}${path}`, timeout, onFailure: "continue" });
    expect(tolerated.type).toBe("none");
  });

  test("whose server is not there lets nothing through", async () => {
    expect((await guard({ url: "http://127.0.0.1:1/" })).reason).toMatch(/ECONNREFUSED|bad port/);
  });

  test.each([
    "file:///etc/passwd",
    "ftp://x/",
    "not an address",
    "http://user:pass@127.0.0.1/",
  ])("%s is not asked", async (url) => {
    expect((await guard({ url })).reason).toMatch(/is not an http address|user name or password/);
  });

  test("sends only variables that the hook names and the settings permit", async () => {
    const headers = { "x-one": "Bearer $TOKEN", "x-two": `$${"{OTHER}"}`, "x-three": "$HOME|$" };
    const handler = { url: `${origin}/empty`, headers, allowedEnvVars: ["TOKEN", "HOME"] };
    await guard(handler);
    expect(received.at(-1)?.headers).toMatchObject({
      "x-one": "Bearer secret-1",
      "x-two": "",
      "x-three": "|$",
    });
    await guard(handler, { http: { allowedVariables: ["OTHER"] } });
    expect(received.at(-1)?.headers).toMatchObject({ "x-one": "Bearer", "x-two": "" });
  });

  test("goes only to addresses on the list, where there is one", async () => {
    const url = `${origin}/empty`;
    expect((await guard({ url }, { http: { allowedUrls: [`${origin}/*`] } })).type).toBe("none");
    const count = received.length;
    const other = await guard({ url }, { http: { allowedUrls: ["https://hooks.example/*"] } });
    expect(other.reason).toContain("is not among the addresses of allowedHttpHookUrls");
    expect((await guard({ url }, { http: { allowedUrls: [] } })).type).toBe("deny");
    expect(received).toHaveLength(count);
  });
});

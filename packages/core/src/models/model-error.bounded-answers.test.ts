import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { afterEach, describe, expect, test } from "vitest";
import { createAiSdkModel } from "./ai-sdk/create-ai-sdk-model.ts";
import { createAnthropicModel } from "./anthropic/create-anthropic-model.ts";
import type { Model } from "./model.ts";
import { describeBody, ModelError } from "./model-error.ts";
import { withRetry } from "./model-factory.ts";
import { createCoolDowns } from "./request-gate.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Serves every request alike and counts them. */
async function provide(
  answer: RequestListener,
  { secure = false }: { secure?: boolean } = {},
): Promise<{ readonly url: string; readonly requests: () => number; readonly connections: () => number }> {
  let requests = 0;
  let connections = 0;
  const listener: RequestListener = (request, response) => {
    requests += 1;
    request.resume().on("end", () => answer(request, response));
  };
  const server = secure ? createSecureServer({ key, cert }, listener) : createServer(listener);
  server.on("connection", () => {
    connections += 1;
  });
  servers.push(server as Server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `${secure ? "https" : "http"}://127.0.0.1:${port}`;
  return { url, requests: () => requests, connections: () => connections };
}

const timeouts = { firstTokenMs: 10_000, betweenTokensMs: 10_000 };

/** A clock on which all pauses are over immediately. */
const clock: WaitClock = { now: () => 0, sleep: async () => undefined };

const patient = (model: Model): Model =>
  withRetry(model, {
    coolDown: createCoolDowns(clock, Math.random).of("p", "m"),
    clock,
    random: Math.random,
    maxAttempts: 3,
  });

const anthropic = async (baseUrl: string): Promise<Model> =>
  patient(createAnthropicModel({ id: "claude-sonnet-4-5", apiKey: "k", baseUrl, timeouts }));

const other = async (baseUrl: string): Promise<Model> =>
  patient(
    await createAiSdkModel({
      provider: "ollama",
      modelId: "m",
      environment: { OLLAMA_BASE_URL: baseUrl },
      timeouts,
    }),
  );

async function errorOf(model: Model): Promise<ModelError> {
  const request = { system: [], tools: [], messages: [{ role: "user", content: "Hello." } as const] };
  try {
    for await (const _ of model.stream(request, { signal: new AbortController().signal }));
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error("the model answered");
}

const page = `<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>${"<p>x</p>".repeat(150_000)}</body></html>`;
const kinds = [
  ["Anthropic's API", anthropic],
  ["a provider package", other],
] as const;

describe.each(kinds)("[MDL-6] what is no answer is said in a few words: %s", (_, modelAt) => {
  test("the body of an error is bounded, and a page is named by its title", async () => {
    const { url } = await provide((_request, response) => {
      response.writeHead(502, { "content-type": "text/html" }).end(page);
    });
    const { message, code } = await errorOf(await modelAt(url));
    expect(code).toBe("server-error");
    expect(message.length).toBeLessThan(1_200);
    expect(message).toMatch(/HTML page of \d+ characters titled "502 Bad Gateway"|Bad Gateway/);
  });

  test("a page with status 200 is asked for again like a 502, and then called a page with its first words", async () => {
    const { url, requests } = await provide((_request, response) => {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
    });
    const { message, code } = await errorOf(await modelAt(url));
    expect(code).toBe("unexpected-answer");
    expect(message).toContain("an HTML page of");
    expect(message).toContain('titled "502 Bad Gateway"');
    expect(message).toMatch(/It begins: "(x ){40,50}x?…/);
    expect(requests()).toBe(3);
  });

  test("an answer in one piece is called what it is", async () => {
    const { url, requests } = await provide((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "streaming is switched off" } }));
    });
    const { message, code } = await errorOf(await modelAt(url));
    expect(code).toBe("unexpected-answer");
    expect(message).toContain("not a stream of events (application/json): streaming is switched off");
    expect(requests()).toBe(3);
  });

  test.each([
    ["a page", "text/html", page],
    ["an error", "application/json", JSON.stringify({ error: { type: "api_error", message: "try again" } })],
    ["an error that is labelled as a stream", "text/event-stream", JSON.stringify({ error: "try again" })],
    ["nothing", "text/event-stream", ""],
  ])("%s with status 200 is followed by another attempt", async (_what, contentType, body) => {
    let isFirst = true;
    const { url } = await provide((_request, response) => {
      const status = isFirst ? 200 : 401;
      response.writeHead(status, { "content-type": contentType }).end(isFirst ? body : "{}");
      isFirst = false;
    });
    expect((await errorOf(await modelAt(url))).code).toBe("unauthorized");
  });

  test("a line without an end is given up", async () => {
    const { url } = await provide((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.on("error", () => undefined);
      const piece = "x".repeat(256 * 1024);
      const send = (left: number): void => {
        if (left === 0 || response.destroyed) return void response.end();
        response.write(left === 100 ? `data: ${piece}` : piece, () => send(left - 1));
      };
      send(100);
    });
    const { message } = await errorOf(await modelAt(url));
    expect(message).toContain("a line of more than 8 MiB");
  });
});

describe("[MDL-6] what will not change is not asked again", () => {
  test("a certificate that is not trusted", async () => {
    const { url, connections } = await provide((_request, response) => void response.end(), { secure: true });
    const { message, code, advice } = await errorOf(await anthropic(url));
    expect(code).toBe("untrusted-certificate");
    expect(message).toContain("DEPTH_ZERO_SELF_SIGNED_CERT");
    expect(advice).toContain("NODE_EXTRA_CA_CERTS");
    expect(connections()).toBe(1);
  });

  test("the same for a provider package", async () => {
    const { url, connections } = await provide((_request, response) => void response.end(), { secure: true });
    expect((await errorOf(await other(url))).code).toBe("untrusted-certificate");
    expect(connections()).toBe(1);
  });

  test("a pause that is longer than a request waits, with how long it is", async () => {
    const { url, requests } = await provide((_request, response) => {
      response.writeHead(429, { "retry-after": "7260" }).end('{"error":{"message":"slow down"}}');
    });
    const { message, advice } = await errorOf(await anthropic(url));
    expect(message).toContain("It asks to wait 2 h 1 min, and a request waits at most 10 min in all.");
    expect(advice).toContain("Try again in 2 h 1 min");
    expect(requests()).toBe(1);
  });

  test("a quota that is used up for hours, also where the provider names only its reset [LIM-7]", async () => {
    const { url, requests } = await provide((_request, response) => {
      const inTwoHours = String(Math.floor(Date.now() / 1000) + 7260);
      const quota = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": inTwoHours,
      };
      response.writeHead(429, quota).end('{"error":{"message":"used up"}}');
    });
    const { message, advice } = await errorOf(await anthropic(url));
    expect(message).toMatch(/It asks to wait 2 h \d min/);
    expect(advice).toContain('"quota": {"wait": true}');
    expect(requests()).toBe(1);
  });
});

test("a body is described by what it is", () => {
  expect(describeBody("  ")).toBe("nothing");
  expect(describeBody('{"error":"no"}')).toBe("no");
  expect(describeBody("x".repeat(2_000))).toMatch(/^x{1000}… \(2000 characters in all\)$/);
  expect(describeBody("<html><h1>Log in</h1></html>")).toBe('an HTML page of 28 characters titled "Log in"');
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

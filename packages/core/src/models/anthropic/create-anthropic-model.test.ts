import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import type { ModelError } from "../model-error.ts";
import { withRetry } from "../model-factory.ts";
import { createCoolDowns } from "../request-gate.ts";
import { type AnthropicModelOptions, createAnthropicModel } from "./create-anthropic-model.ts";

type Answer = (response: ServerResponse, request: IncomingMessage, body: Record<string, unknown>) => void;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Provider {
  readonly url: string;
  readonly bodies: Record<string, unknown>[];
  readonly headers: IncomingMessage["headers"][];
  /** Method and path of each request. */
  readonly lines: string[];
  readonly connections: () => number;
}

/** Answers each request with the next answer, and all further ones with the last. */
async function provide(...answers: Answer[]): Promise<Provider> {
  const bodies: Record<string, unknown>[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const lines: string[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body: Record<string, unknown> = JSON.parse(text);
    const answer = answers[Math.min(bodies.length, answers.length - 1)];
    bodies.push(body);
    headers.push(request.headers);
    lines.push(`${request.method} ${request.url}`);
    answer?.(response, request, body);
  });
  server.on("connection", () => {
    connections += 1;
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, bodies, headers, lines, connections: () => connections };
}

function sse(events: readonly object[]): string {
  return events
    .map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}

const begin = {
  type: "message_start",
  message: {
    id: "msg_1",
    model: "claude-x",
    usage: { input_tokens: 3, output_tokens: 1, cache_read_input_tokens: 40 },
  },
};
const thinking = [
  { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "let me see" } },
  { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "sig" } },
  { type: "content_block_stop", index: 0 },
];
const words = [
  { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Grüße 😀" } },
  { type: "content_block_stop", index: 1 },
];
const call = [
  {
    type: "content_block_start",
    index: 2,
    content_block: { type: "tool_use", id: "t1", name: "Read", input: {} },
  },
  {
    type: "content_block_delta",
    index: 2,
    delta: { type: "input_json_delta", partial_json: '{"file_path":' },
  },
  { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '"/a"}' } },
  { type: "content_block_stop", index: 2 },
];
function finish(reason: string): object[] {
  return [
    { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 12 } },
    { type: "message_stop" },
  ];
}
const whole = [begin, { type: "ping" }, ...thinking, ...words, ...call, ...finish("tool_use")];

function open(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "request-id": "req_1" });
}
function streaming(events: readonly object[]): Answer {
  return (response) => {
    open(response);
    response.end(sse(events));
  };
}
function failing(
  status: number,
  type: string,
  message: string,
  headers: Record<string, string> = {},
): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "request-id": "req_e", ...headers });
    response.end(JSON.stringify({ type: "error", error: { type, message } }));
  };
}

const request: ModelRequest = {
  system: ["be brief"],
  tools: [{ name: "Read", description: "reads", inputSchema: { type: "object", properties: {} } }],
  messages: [{ role: "user", content: "hi" }],
};

function modelAt(url: string, options: Partial<AnthropicModelOptions> = {}): Model {
  return createAnthropicModel({
    id: "claude-sonnet-5",
    apiKey: "key",
    baseUrl: url,
    timeouts: { firstTokenMs: 20_000, betweenTokensMs: 20_000 },
    ...options,
  });
}

async function collect(model: Model, signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream(request, { signal })) events.push(event);
  return events;
}

async function errorOf(model: Model): Promise<ModelError> {
  return collect(model).then(
    () => Promise.reject(new Error("no error")),
    (error: ModelError) => error,
  );
}

/** Waiting takes no time, but the clock continues. */
function quickClock(): WaitClock {
  let now = 0;
  return {
    now: () => now,
    sleep: async (milliseconds) => {
      now += milliseconds;
    },
  };
}

function patient(model: Model): Model {
  const clock = quickClock();
  const coolDown = createCoolDowns(clock, () => 0).of("anthropic", "x");
  return withRetry(model, { coolDown, clock, random: () => 0, maxAttempts: 4 });
}

describe("a message over a real socket [MDL-3]", () => {
  test("thinking, text and a call arrive with usage and request id", async () => {
    const provider = await provide(streaming(whole));
    const events = await collect(modelAt(provider.url));
    expect(events.at(0)).toMatchObject({ type: "message-started", id: "msg_1" });
    expect(events.at(-1)).toEqual({
      type: "message-ended",
      id: "msg_1",
      model: "claude-x",
      requestId: "req_1",
      stopReason: "tool_use",
      usage: { inputTokens: 3, outputTokens: 12, cacheReadTokens: 40, cacheWriteTokens: 0 },
      message: {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "let me see", signature: "sig" },
          { type: "text", text: "Grüße 😀" },
          { type: "tool_use", id: "t1", name: "Read", input: { file_path: "/a" } },
        ],
      },
    });
    expect(provider.bodies[0]).toMatchObject({ model: "claude-sonnet-5", stream: true });
  });

  test.each([
    "refusal",
    "max_tokens",
    "pause_turn",
    "model_context_window_exceeded",
  ])("the stop reason %s ends the message like any other", async (reason) => {
    const provider = await provide(streaming([begin, ...thinking, ...finish(reason)]));
    expect((await collect(modelAt(provider.url))).at(-1)).toMatchObject({ stopReason: reason });
  });

  test("any cut of the bytes into packets gives the same events", async () => {
    const bytes = Buffer.from(sse(whole));
    const provider = await provide(async (response, { headers }) => {
      open(response);
      const cuts = String(headers["x-cuts"]).split(",").map(Number);
      let from = 0;
      for (const to of [...cuts.sort((a, b) => a - b), bytes.length]) {
        response.write(bytes.subarray(from, to));
        from = to;
        await new Promise(setImmediate);
      }
      response.end();
    });
    const expected = await collect(modelAt(provider.url, { headers: { "x-cuts": "0" } }));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { minLength: 1, maxLength: 8 }), async (cuts) => {
        const events = await collect(modelAt(provider.url, { headers: { "x-cuts": cuts.join(",") } }));
        expect(events).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });

  test("one connection serves turn after turn", async () => {
    const provider = await provide(streaming(whole));
    const model = modelAt(provider.url);
    for (let turn = 0; turn < 10; turn += 1) await collect(model);
    expect(provider.bodies).toHaveLength(10);
    expect(provider.connections()).toBeLessThanOrEqual(2);
  });

  test("a reader that stops at the end of the message keeps the connection too", async () => {
    const provider = await provide(streaming(whole));
    const model = modelAt(provider.url);
    for (let turn = 0; turn < 10; turn += 1) {
      for await (const { type } of model.stream(request, { signal: new AbortController().signal })) {
        if (type === "message-ended") break;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(provider.connections()).toBeLessThanOrEqual(2);
  });

  test("a connection that the other side closed while it was idle is replaced without an error", async () => {
    const provider = await provide(streaming(whole));
    const model = modelAt(provider.url);
    await collect(model);
    servers[0]?.closeAllConnections();
    await collect(model);
    expect(provider.bodies).toHaveLength(2);
  });
});

describe("what proves who asks [MDL-3]", () => {
  test.each<[string, Partial<AnthropicModelOptions>, string | undefined]>([
    ["a key", { apiKey: "key-1" }, "Bearer key-1"],
    ["a token before a key", { apiKey: "key-1", authToken: "token-1" }, "Bearer token-1"],
    ["a helper's key", { apiKeyHelper: async () => " helped\n" }, "Bearer helped"],
    ["nothing, for a gateway that asks for nothing", {}, undefined],
  ])("%s is sent", async (_what, access, expected) => {
    const provider = await provide(streaming(whole));
    const timeouts = { firstTokenMs: 20_000, betweenTokensMs: 20_000 };
    await collect(
      createAnthropicModel({ id: "claude-sonnet-5", baseUrl: provider.url, timeouts, ...access }),
    );
    expect(provider.headers[0]?.authorization).toBe(expected);
    expect(provider.headers[0]?.["x-api-key"]).toBeUndefined();
  });

  test("a helper that fails is explained and nothing is sent", async () => {
    const provider = await provide(streaming(whole));
    const timeouts = { firstTokenMs: 20_000, betweenTokensMs: 20_000 };
    const helper = async (): Promise<string> => {
      throw new Error("vault is sealed");
    };
    const model = createAnthropicModel({ id: "x", baseUrl: provider.url, timeouts, apiKeyHelper: helper });
    expect(await errorOf(model)).toMatchObject({
      code: "unauthorized",
      message: expect.stringContaining("vault is sealed"),
    });
    expect(provider.bodies).toEqual([]);
  });

  test("the larger window of an older model is asked for, and the suffix stays here", async () => {
    const provider = await provide(streaming(whole));
    await collect(modelAt(provider.url, { id: "claude-sonnet-4-20250514[1m]" }));
    expect(provider.bodies[0]?.["model"]).toBe("claude-sonnet-4-20250514");
    expect(provider.headers[0]?.["anthropic-beta"]).toContain("context-1m");
  });
});

describe("what a request looks like [MDL-3]", () => {
  test.each([
    ["", "/v1/messages"],
    ["/", "/v1/messages"],
    ["/gateway/anthropic", "/gateway/anthropic/v1/messages"],
    ["/gateway/anthropic/", "/gateway/anthropic/v1/messages"],
  ])("the path %j of the base URL is kept", async (path, expected) => {
    const provider = await provide(streaming(whole));
    await collect(modelAt(`${provider.url}${path}`));
    expect(provider.lines).toEqual([`POST ${expected}`]);
  });

  test("it says what it sends, which API it speaks and who it is", async () => {
    const provider = await provide(streaming(whole));
    await collect(modelAt(provider.url));
    expect(provider.headers[0]).toMatchObject({
      accept: "application/json",
      "content-type": "application/json",
      "anthropic-version": "2026-10-21",
      "user-agent": "retinue",
    });
  });

  test("headers of the person come on top and replace ours, whatever their letter case", async () => {
    const provider = await provide(streaming(whole));
    const headers = {
      "X-Team": "blue",
      "Anthropic-Version": "2030-01-01",
      "anthropic-beta": "one,two",
      Authorization: "Basic abc",
    };
    await collect(modelAt(provider.url, { headers }));
    expect(provider.headers[0]).toMatchObject({
      "x-team": "blue",
      "anthropic-version": "2030-01-01",
      "anthropic-beta": "one,two",
      authorization: "Basic abc",
    });
  });

  test.each([
    ["an address that is none", "nonsense", {}, /could not be sent to nonsense: Invalid URL/],
    ["a header that cannot be sent", undefined, { "x-a": "b\nc" }, /header x-a contains a line break/],
    ["a name that no header has", undefined, { "x a": "b" }, /"x a" is an invalid header name/],
  ])("%s is explained and not tried again", async (_what, address, headers, message) => {
    const provider = await provide(streaming(whole));
    const failure = await errorOf(modelAt(address ?? provider.url, { headers }));
    expect(failure).toMatchObject({
      code: "invalid-request",
      mayPass: false,
      message: expect.stringMatching(message),
    });
    expect(provider.bodies).toEqual([]);
  });
});

describe("errors over a real socket [MDL-6]", () => {
  test.each([
    [failing(529, "overloaded_error", "busy"), { code: "overloaded", status: 529 }],
    [failing(500, "api_error", "oops"), { code: "server-error", status: 500 }],
    [
      failing(429, "rate_limit_error", "slow", { "retry-after": "3" }),
      { code: "rate-limited", retryAfterMs: 3000 },
    ],
    [
      failing(400, "invalid_request_error", "prompt is too long: 2 > 1"),
      { code: "context-too-long", requestId: "req_e" },
    ],
    [
      failing(401, "authentication_error", "bad key"),
      { code: "unauthorized", advice: expect.stringContaining("ANTHROPIC_API_KEY") },
    ],
    [failing(404, "not_found_error", "model: x"), { code: "not-found" }],
    [
      failing(307, "", "elsewhere", { location: "http://example.com/" }),
      { code: "invalid-request", status: 307 },
    ],
  ])("an answer with an error status is an error %#", async (answer, expected) => {
    const provider = await provide(answer);
    expect(await errorOf(modelAt(provider.url))).toMatchObject(expected);
    expect(provider.bodies).toHaveLength(1);
  });

  test("429 with Retry-After, then 529, then a cut: the fourth attempt answers, and each failure was reported", async () => {
    const cut: Answer = (response) => {
      open(response);
      response.write(sse([begin, ...thinking]), () => response.destroy());
    };
    const provider = await provide(
      failing(429, "rate_limit_error", "slow", { "retry-after": "2" }),
      failing(529, "overloaded_error", "busy"),
      cut,
      streaming(whole),
    );
    const events = await collect(patient(modelAt(provider.url)));
    const failures = events.filter(({ type }) => type === "attempt-failed");
    expect(failures).toMatchObject([
      { attempt: 1, maxAttempts: 4, delayMs: 2000, code: "rate-limited", status: 429 },
      { attempt: 2, code: "overloaded", status: 529 },
      { attempt: 3, code: "stream-cut" },
    ]);
    expect(events.filter(({ type }) => type === "message-ended")).toHaveLength(1);
    expect(provider.bodies).toHaveLength(4);
    expect(provider.bodies[3]).toEqual(provider.bodies[0]);
  });

  test("a refused connection", async () => {
    const provider = await provide(streaming(whole));
    const server = servers.pop();
    await new Promise((resolve) => server?.close(resolve));
    expect(await errorOf(modelAt(provider.url))).toMatchObject({
      code: "connection-failed",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });

  test("a connection cut before the headers", async () => {
    const provider = await provide((response) => response.destroy());
    expect(await errorOf(modelAt(provider.url))).toMatchObject({ code: "connection-failed", mayPass: true });
  });

  test("a connection cut in the middle of the answer", async () => {
    const provider = await provide((response) => {
      open(response);
      response.write(sse([begin, ...thinking]), () => response.destroy());
    });
    expect(await errorOf(modelAt(provider.url))).toMatchObject({ code: "stream-cut", requestId: "req_1" });
  });

  test("an answer that ends politely but too early", async () => {
    const provider = await provide(streaming([begin, ...thinking]));
    expect(await errorOf(modelAt(provider.url))).toMatchObject({ code: "stream-cut" });
  });

  test("an event that is not JSON", async () => {
    const provider = await provide((response) => {
      open(response);
      response.end(`${sse([begin])}event: content_block_start\ndata: {"type": oops\n\n`);
    });
    expect(await errorOf(modelAt(provider.url))).toMatchObject({
      code: "stream-malformed",
      message: expect.stringContaining("oops"),
    });
  });

  test("an error event in the middle of the answer", async () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "busy" } };
    const provider = await provide(streaming([begin, ...thinking, error]));
    expect(await errorOf(modelAt(provider.url))).toMatchObject({ code: "overloaded", mayPass: true });
  });

  test("thinking that another model wrote is refused once and then left out", async () => {
    const provider = await provide(
      failing(400, "invalid_request_error", "messages.1: Invalid `signature` in `thinking` block"),
      streaming(whole),
    );
    const messages: ModelRequest["messages"] = [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "x", signature: "old" },
          { type: "text", text: "yes" },
        ],
      },
      { role: "user", content: "continue" },
    ];
    const events: ModelEvent[] = [];
    const { signal } = new AbortController();
    for await (const event of modelAt(provider.url).stream({ ...request, messages }, { signal }))
      events.push(event);
    expect(events.at(-1)?.type).toBe("message-ended");
    expect(JSON.stringify(provider.bodies[0])).toContain('"old"');
    expect(JSON.stringify(provider.bodies[1])).not.toContain('"old"');
  });
});

describe("time limits over a real socket [MDL-6]", () => {
  const never: Answer = () => undefined;
  const headersOnly: Answer = (response) => {
    open(response);
    response.flushHeaders();
  };
  const startOnly: Answer = (response) => {
    open(response);
    response.write(sse([begin]));
  };
  const pingsOnly: Answer = (response) => {
    open(response);
    response.write(sse([begin, ...thinking]));
    const timer = setInterval(() => response.write(sse([{ type: "ping" }])), 10);
    response.on("close", () => clearInterval(timer));
  };
  const halfway: Answer = (response) => {
    open(response);
    response.write(sse([begin, ...thinking]));
  };

  const first = { firstTokenMs: 60, betweenTokensMs: 60 };
  const between = { firstTokenMs: 10_000, betweenTokensMs: 60 };
  const alive = { firstTokenMs: 500, betweenTokensMs: 490 };

  test.each([
    ["no headers", never, first, "did not start an answer"],
    ["no event", headersOnly, first, "did not start an answer"],
    ["no first token", startOnly, first, "did not start an answer"],
    ["silence between tokens", halfway, between, "fell silent"],
    ["nothing but pings between tokens", pingsOnly, alive, "sent nothing of its answer"],
  ])("%s is a stall, and the connection is closed", async (_what, answer, timeouts, words) => {
    const closed: Promise<void>[] = [];
    const provider = await provide((response, incoming, body) => {
      closed.push(new Promise((resolve) => response.on("close", resolve)));
      answer(response, incoming, body);
    });
    const failure = await errorOf(modelAt(provider.url, { timeouts }));
    expect(failure).toMatchObject({
      code: "stalled",
      mayPass: true,
      message: expect.stringContaining(words),
    });
    await Promise.all(closed);
  });

  test("a reader that takes its time is not a stall of the provider", async () => {
    const provider = await provide(streaming(whole));
    const { signal } = new AbortController();
    let last: ModelEvent | undefined;
    for await (const event of modelAt(provider.url, { timeouts: between }).stream(request, { signal })) {
      if (event.type === "text-delta") await new Promise((resolve) => setTimeout(resolve, 150));
      last = event;
    }
    expect(last?.type).toBe("message-ended");
  });
});

describe("stopping", () => {
  test("an abort in the middle rejects with its reason and closes the connection", async () => {
    let closed: Promise<void> | undefined;
    const provider = await provide((response) => {
      closed = new Promise((resolve) => response.on("close", resolve));
      open(response);
      response.write(sse([begin, ...thinking]));
    });
    const controller = new AbortController();
    const reason = new Error("enough");
    const run = async (): Promise<void> => {
      for await (const event of modelAt(provider.url).stream(request, { signal: controller.signal })) {
        if (event.type === "block-ended") controller.abort(reason);
      }
    };
    await expect(run()).rejects.toBe(reason);
    await closed;
  });

  test("an abort while the provider is silent rejects immediately", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const provider = await provide(() => controller.abort(reason));
    await expect(collect(modelAt(provider.url), controller.signal)).rejects.toBe(reason);
  });

  test("an abort before the start sends nothing", async () => {
    const provider = await provide(streaming(whole));
    const reason = new Error("no");
    await expect(collect(modelAt(provider.url), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(provider.bodies).toEqual([]);
  });

  test("a reader that leaves early closes the connection", async () => {
    let closed: Promise<void> | undefined;
    const provider = await provide((response) => {
      closed = new Promise((resolve) => response.on("close", resolve));
      open(response);
      response.write(sse([begin, ...thinking]));
    });
    for await (const event of modelAt(provider.url).stream(request, {
      signal: new AbortController().signal,
    })) {
      if (event.type === "thinking-delta") break;
    }
    await closed;
  });
});

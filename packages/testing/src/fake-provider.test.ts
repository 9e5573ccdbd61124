import Anthropic from "@anthropic-ai/sdk";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { describe, expect, test } from "vitest";
import { type FakeProvider, startFakeProvider } from "./fake-provider.ts";

const body = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "hello" }] };

describe("[MDL-5] the fake provider speaks the Messages protocol", () => {
  test("the official SDK reads its stream", async () => {
    await using provider = await startFakeProvider({
      script: [{ thinking: "hm", text: "Reading.", calls: [{ name: "Read", input: { path: "a" } }] }],
    });
    const message = await client(provider)
      .messages.stream(body as Anthropic.MessageCreateParams)
      .finalMessage();
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "hm", signature: expect.stringContaining("signature") },
      { type: "text", text: "Reading." },
      { type: "tool_use", name: "Read", input: { path: "a" } },
    ]);
    expect(message).toMatchObject({ stop_reason: "tool_use", usage: { output_tokens: expect.any(Number) } });
    provider.finish();
  });

  test("the official SDK reads its answer in one piece, and its count of tokens", async () => {
    await using provider = await startFakeProvider({ script: [{ text: "Cut", stopReason: "max_tokens" }] });
    const anthropic = client(provider);
    const message = await anthropic.messages.create({ ...body, messages: [{ role: "user", content: "hi" }] });
    expect(message).toMatchObject({ content: [{ type: "text", text: "Cut" }], stop_reason: "max_tokens" });
    const counted = await anthropic.messages.countTokens({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
    });
    expect(counted.input_tokens).toBeGreaterThan(0);
    expect(provider.requests).toHaveLength(1);
  });

  test.each([
    ["rate-limited", 429, "rate_limit_error"],
    ["overloaded", 529, "overloaded_error"],
    ["server-error", 500, "api_error"],
    ["context-too-long", 400, "invalid_request_error"],
    ["unauthorized", 401, "authentication_error"],
    ["not-found", 404, "not_found_error"],
  ] as const)("%s is status %d with the error %s", async (failure, status, type) => {
    await using provider = await startFakeProvider({ script: [{ failure, retryAfterMs: 1_500 }] });
    const response = await post(provider, body);
    expect(response.status).toBe(status);
    expect([response.headers.get("retry-after"), response.headers.get("retry-after-ms")]).toEqual([
      "2",
      "1500",
    ]);
    expect(await response.json()).toMatchObject({ type: "error", error: { type } });
  });

  test("an error after some deltas is an error event in the stream", async () => {
    await using provider = await startFakeProvider({
      script: [{ text: "abc", failure: "overloaded", after: 1 }],
    });
    const text = await (await post(provider, { ...body, stream: true })).text();
    expect(text).toContain('"text":"abc"');
    expect(text).toMatch(/event: error\ndata: .*overloaded_error/);
    expect(text).not.toContain("message_stop");
  });

  test.each([
    ["connection-failed", undefined],
    ["cut", undefined],
    ["cut", 1],
  ] as const)("%s after %s deltas breaks the connection", async (failure, after) => {
    const step = { text: "abcdef", failure, after };
    await using provider = await startFakeProvider({ script: [step, step] });
    for (const stream of [true, false]) {
      await expect(post(provider, { ...body, stream }).then((response) => response.text())).rejects.toThrow();
    }
  });

  test.each([
    ["a call without its result", [user("a"), assistant(call("x")), user("b")], "without `tool_result`"],
    [
      "a result without its call",
      [user([{ type: "tool_result", tool_use_id: "x" }])],
      "unexpected `tool_use_id`",
    ],
    ["an empty text", [user([{ type: "text", text: "" }])], "non-empty"],
    ["no message", [], "at least one message"],
    [
      "five marks",
      [user(Array.from({ length: 5 }, () => ({ type: "text", text: "a", ...mark })))],
      "maximum of 4",
    ],
  ])("a request with %s is refused as the real one does", async (_, messages, says) => {
    await using provider = await startFakeProvider({ respond: () => "never" });
    const response = await post(provider, { ...body, messages });
    expect(response.status).toBe(400);
    expect(JSON.stringify(await response.json())).toContain(says);
    expect(provider.requests[0]?.status).toBe("failed");
  });

  test("a wrong key and a prompt over the window are refused", async () => {
    await using provider = await startFakeProvider({ respond: () => "x", apiKey: "good", contextWindow: 50 });
    expect((await post(provider, body, { "x-api-key": "bad" })).status).toBe(401);
    expect((await post(provider, body, { "x-api-key": "good" })).status).toBe(200);
    const long = { ...body, messages: [user("word ".repeat(200))] };
    const response = await post(provider, long, { "x-api-key": "good" });
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringMatching(/^prompt is too long/) },
    });
  });

  test("cached prefixes are counted in the usage", async () => {
    await using provider = await startFakeProvider({ respond: () => "x", minimumCacheTokens: 10 });
    const marked = { ...body, system: [{ type: "text", text: "word ".repeat(100), ...mark }] };
    await (await post(provider, marked)).text();
    const second: unknown = await (await post(provider, marked)).json();
    expect(second).toMatchObject({ usage: { cache_creation_input_tokens: 0 } });
    const [first, again] = provider.requests.map(({ usage }) => usage);
    expect(again?.cacheReadTokens).toBe(first?.cacheWriteTokens);
    expect(again?.cacheReadTokens).toBeGreaterThan(100);
  });
});

describe("[MDL-5] the fake provider is honest with the test", () => {
  test("requests are kept with body, headers and their reading", async () => {
    await using provider = await startFakeProvider({
      respond: ({ system }) => `system: ${system.join("+")}`,
    });
    const marked = { ...body, system: [{ type: "text", text: "Be brief.", ...mark }] };
    const answer: unknown = await (await post(provider, marked, { "x-own": "1" })).json();
    expect(answer).toMatchObject({ content: [{ text: "system: Be brief." }] });
    expect(provider.requests[0]).toMatchObject({
      path: "/v1/messages",
      headers: { "x-own": "1" },
      body: marked,
      request: { system: ["Be brief."], messages: [user("hello")], maxTokens: 100 },
    });
  });

  test("a request without a step is refused, not tried again, and reported at the end", async () => {
    await using provider = await startFakeProvider({ script: ["one"] });
    await (await post(provider, body)).text();
    const response = await post(provider, body);
    expect(response.status).toBe(400);
    expect(JSON.stringify(await response.json())).toContain("script-mismatch");
    expect(() => provider.finish()).toThrow("Requests that found no step");
  });

  test("a client that goes away is noticed, and disposing ends what hangs", async () => {
    const provider = await startFakeProvider({
      script: [{ failure: "stall" }, { text: "abc", failure: "stall", after: 1 }],
    });
    const controller = new AbortController();
    const gone = fetch(`${provider.url}/v1/messages`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: controller.signal,
    });
    const hanging = post(provider, { ...body, stream: true }).then((response) => response.text());
    const both = Promise.allSettled([gone, hanging]);
    while (provider.requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await provider[Symbol.asyncDispose]();
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(provider.requests.map(({ status }) => status)).toEqual(["abandoned", "abandoned"]);
    await expect(post(provider, body)).rejects.toThrow();
  });
});

describe("[MDL-5] the fake provider speaks the chat completions protocol", () => {
  test("in one piece", async () => {
    await using provider = await startFakeProvider({
      script: [
        {
          thinking: "hm",
          text: "Hi",
          calls: [{ name: "Read", input: { a: 1 } }],
          usage: { cacheReadTokens: 7 },
        },
      ],
    });
    const response = await post(
      provider,
      { model: "m", messages: [user("hello")] },
      {},
      "/v1/chat/completions",
    );
    expect(await response.json()).toMatchObject({
      choices: [
        {
          message: {
            content: "Hi",
            reasoning_content: "hm",
            tool_calls: [{ type: "function", function: { name: "Read", arguments: '{"a":1}' } }],
          },
          finish_reason: "tool_calls",
        },
      ],
      usage: { prompt_tokens_details: { cached_tokens: 7 } },
    });
  });

  test("the conversation is read back into blocks", async () => {
    await using provider = await startFakeProvider({ respond: () => "x" });
    const messages = [
      { role: "system", content: "Be brief." },
      user("look"),
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", function: { name: "Read", arguments: '{"a":1}' } }],
      },
      { role: "tool", tool_call_id: "c", content: "found" },
      user([{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]),
    ];
    await (await post(provider, { model: "m", messages }, {}, "/v1/chat/completions")).text();
    expect(provider.requests[0]?.request).toMatchObject({
      system: ["Be brief."],
      messages: [
        { role: "user", content: [{ type: "text", text: "look" }] },
        { role: "assistant", content: [{ type: "tool_use", id: "c", name: "Read", input: { a: 1 } }] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c", content: "found" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
          ],
        },
      ],
    });
  });

  test("a call without its tool message is refused", async () => {
    await using provider = await startFakeProvider({ respond: () => "x" });
    const messages = [user("a"), { role: "assistant", tool_calls: [{ id: "c", function: {} }] }, user("b")];
    const response = await post(provider, { model: "m", messages }, {}, "/v1/chat/completions");
    expect(response.status).toBe(400);
    expect(JSON.stringify(await response.json())).toContain("Missing: c");
  });
});

const mark = { cache_control: { type: "ephemeral" } };

function client(provider: FakeProvider): Anthropic {
  return new Anthropic({ apiKey: "key", baseURL: provider.url, maxRetries: 0 });
}

function post(
  provider: FakeProvider,
  content: JsonRecord,
  headers: Readonly<Record<string, string>> = {},
  path = "/v1/messages",
): Promise<Response> {
  return fetch(provider.url + path, { method: "POST", body: JSON.stringify(content), headers });
}

function user(content: unknown): JsonRecord {
  return { role: "user", content };
}

function assistant(...content: readonly JsonRecord[]): JsonRecord {
  return { role: "assistant", content };
}

function call(id: string): JsonRecord {
  return { type: "tool_use", id, name: "Read", input: {} };
}

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chooseAdapter, createModelFactory, type ModelFactoryOptions } from "./model-factory.ts";
import { createCoolDowns } from "./request-gate.ts";

describe("chooseAdapter [MDL-3] [MDL-4]", () => {
  test.each<[{ id: string; provider?: string }, Record<string, string>, boolean, string, string]>([
    [{ id: "claude-sonnet-5" }, { ANTHROPIC_API_KEY: "k" }, false, "anthropic", "ANTHROPIC_API_KEY"],
    [{ id: "claude-sonnet-5" }, { ANTHROPIC_AUTH_TOKEN: "t" }, false, "anthropic", "ANTHROPIC_AUTH_TOKEN"],
    [{ id: "claude-sonnet-5" }, { ANTHROPIC_BASE_URL: "http://x" }, false, "anthropic", "ANTHROPIC_BASE_URL"],
    [{ id: "claude-sonnet-5" }, {}, true, "anthropic", "apiKeyHelper"],
    [
      { id: "claude-sonnet-5", provider: "anthropic" },
      { ANTHROPIC_API_KEY: "k" },
      false,
      "anthropic",
      "ANTHROPIC_API_KEY",
    ],
    [{ id: "claude-sonnet-5", provider: "anthropic" }, {}, false, "none", "needs a key"],
    [{ id: "claude-sonnet-5" }, {}, false, "offline", "No provider is configured"],
    [{ id: "claude-sonnet-5" }, { ANTHROPIC_API_KEY: " " }, false, "offline", "claude-sonnet-5"],
    [{ id: "gpt-5", provider: "openai" }, { ANTHROPIC_API_KEY: "k" }, false, "ai-sdk", "openai/gpt-5"],
    [{ id: "any", provider: "offline" }, { ANTHROPIC_API_KEY: "k" }, false, "offline", "by name"],
  ])("%j with %j and helper %j is asked through %s, because of %s", (reference, environment, helper, adapter, why) => {
    const choice = chooseAdapter(reference, environment, helper);
    expect(choice.adapter).toBe(adapter);
    expect(choice.why).toContain(why);
  });
});

describe("createModelFactory [MDL-3]", () => {
  const asked: Record<string, unknown>[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const paths: (string | undefined)[] = [];
  let attempts = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    asked.push(JSON.parse(text));
    headers.push(request.headers);
    paths.push(request.url);
    attempts += 1;
    if (attempts === 1) {
      response.writeHead(529, { "retry-after-ms": "1" }).end("{}");
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const events = [
      { type: "message_start", message: { id: "m", model: "x", usage: { input_tokens: 1 } } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ];
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
  });
  let url = "";
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  function factory(environment: Record<string, string>, settings: ModelFactoryOptions["settings"] = {}) {
    let time = 0;
    const clock = {
      now: () => time,
      sleep: async (milliseconds: number, signal: AbortSignal) => {
        time += milliseconds;
        await sleep(0, signal);
      },
    };
    const coolDowns = createCoolDowns(clock, () => 0);
    return createModelFactory({ environment, settings, coolDowns, clock, random: () => 0 });
  }

  test("a model of Anthropic retries, is known to the catalog, and sent under the name settings give it", async () => {
    const models = factory(
      { ANTHROPIC_BASE_URL: url },
      {
        modelOverrides: { "claude-sonnet-5": "deployment-7" },
        modelPricing: { "claude-sonnet-5": { input: 9, output: 9 } },
      },
    );
    const model = await models.model({ id: "claude-sonnet-5" });
    const types: string[] = [];
    const request = { system: [], tools: [], messages: [{ role: "user", content: "hi" }] } as const;
    for await (const { type } of model.stream(request, { signal: new AbortController().signal }))
      types.push(type);
    expect(types).toEqual(["attempt-failed", "message-started", "message-ended"]);
    expect(asked.at(-1)?.["model"]).toBe("deployment-7");
    expect(model.facts.price?.input).toBe(9);
    expect(models.describe({ id: "claude-sonnet-5" }).adapter).toBe("anthropic");
  });

  test("address, key and headers come from the environment, and so does the proxy", async () => {
    const proxies: unknown[] = [];
    const environment = {
      ANTHROPIC_BASE_URL: ` ${url}/gateway/ `,
      ANTHROPIC_API_KEY: " key ",
      ANTHROPIC_CUSTOM_HEADERS:
        "X-Team: blue: green\r\nnot a header\nanthropic-beta: one\nAnthropic-Beta: two",
      https_proxy: "http://proxy.test:8080",
    };
    const clock = { now: () => 0, sleep: async () => undefined };
    const coolDowns = createCoolDowns(clock, () => 0);
    const models = createModelFactory({
      environment,
      coolDowns,
      clock,
      random: () => 0,
      fetch(named) {
        proxies.push(named);
        return globalThis.fetch;
      },
    });
    const model = await models.model({ id: "claude-sonnet-5" });
    const request = { system: [], tools: [], messages: [{ role: "user", content: "hi" }] } as const;
    for await (const _ of model.stream(request, { signal: new AbortController().signal }));
    expect(paths.at(-1)).toBe("/gateway/v1/messages");
    expect(headers.at(-1)).toMatchObject({
      authorization: "Bearer key",
      "x-team": "blue: green",
      "anthropic-beta": "one,two",
    });
    expect(proxies).toMatchObject([{ HTTPS_PROXY: "http://proxy.test:8080" }]);
  });

  test.each([
    "X-Ü: 1",
    "X A: 1",
  ])("a header that cannot be sent is refused with its name, and not left out: %s", async (line) => {
    const models = factory({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "k",
      ANTHROPIC_CUSTOM_HEADERS: line,
    });
    const model = await models.model({ id: "claude-sonnet-5" });
    const request = { system: [], tools: [], messages: [{ role: "user", content: "hi" }] } as const;
    const asked = async () => {
      for await (const _ of model.stream(request, { signal: new AbortController().signal }));
    };
    await expect(asked()).rejects.toThrow(`"${line.split(":")[0]}" is an invalid header name`);
  });

  test("the same reference gives the same model", async () => {
    const models = factory({ ANTHROPIC_API_KEY: "k" });
    expect(await models.model({ id: "a" })).toBe(await models.model({ id: "a" }));
    expect(await models.model({ id: "a" })).not.toBe(await models.model({ id: "b" }));
  });

  test("with nothing configured the offline model serves", async () => {
    const model = await factory({}).model({ id: "claude-sonnet-5" });
    expect(model.facts.provider).toBe("offline");
  });

  test("a provider asked for by name without its key is refused with what to set", async () => {
    await expect(factory({}).model({ id: "x", provider: "anthropic" })).rejects.toMatchObject({
      code: "unauthorized",
      advice: expect.stringContaining("ANTHROPIC_API_KEY"),
    });
  });
});

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer, StepError, StepFunction } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  claude,
  createErrorStage,
  type ErrorStageOptions,
  foreign,
  noteCall,
  promptOf,
  taskOf,
} from "./errors-stage.ts";

const words = "An answer that is long enough to come in many pieces, one after the other. ".repeat(4);

async function startProvider(respond: StepFunction): Promise<FakeProvider> {
  const provider = await startFakeProvider({ respond });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return provider;
}

interface Case {
  /** What goes wrong in each attempt; the last one continues for ever where the child does not complete. */
  readonly errors: readonly StepAnswer[];
  readonly ends: "completed" | Partial<RunEnding>;
  /** How often the provider is asked; `least` where a connection that was reset may have been stale. */
  readonly requests: number | { readonly least: number };
}

const failed = (reason: string, error: RegExp): Partial<RunEnding> => ({
  status: "failed",
  reason,
  error: expect.stringMatching(error),
});

const passing = (name: string, failure: StepAnswer): [string, Case] => [
  `${name} once`,
  { errors: [failure], ends: "completed", requests: 2 },
];

const forEver = (name: string, failure: StepAnswer, ends: Case["ends"]): [string, Case] => [
  `${name} for ever`,
  { errors: [failure], ends, requests: 3 },
];

const atFirst = (name: string, failure: StepError, ends: Case["ends"]): [string, Case] => [
  name,
  { errors: [{ failure }], ends, requests: 1 },
];

const reset = { failure: "connection-failed" } as const;

const cases: ReadonlyMap<string, Case> = new Map<string, Case>([
  passing("429 with a wish", { failure: "rate-limited", retryAfterMs: 1000 }),
  passing("429 without a wish", { failure: "rate-limited" }),
  passing("529", { failure: "overloaded" }),
  passing("529 in the middle", { failure: "overloaded", after: 2 }),
  passing("500", { failure: "server-error" }),
  passing("cut immediately", { failure: "cut" }),
  passing("cut in the middle", { failure: "cut", after: 3 }),
  passing("bad JSON", { failure: "malformed", after: 1 }),
  ["reset once", { errors: [reset], ends: "completed", requests: { least: 2 } }],
  [
    "one error after another",
    { errors: [{ failure: "overloaded" }, { failure: "cut", after: 1 }], ends: "completed", requests: 3 },
  ],
  forEver("429", { failure: "rate-limited" }, failed("rate-limited", /limit is reached/)),
  forEver("529", { failure: "overloaded" }, failed("overloaded", /overloaded/)),
  forEver("500", { failure: "server-error" }, failed("server-error", /provider failed/)),
  forEver("cut", { failure: "cut", after: 2 }, failed("stream-cut", /./)),
  forEver("bad JSON", { failure: "malformed" }, failed("stream-malformed", /./)),
  ["reset for ever", { errors: [reset], ends: failed("connection-failed", /./), requests: { least: 3 } }],
  atFirst("400", "invalid-request", failed("invalid-request", /invalid/)),
  atFirst("401", "unauthorized", failed("unauthorized", /key/)),
  atFirst("404", "not-found", failed("not-found", /does not exist/)),
  atFirst("context too long", "context-too-long", failed("context-too-long", /too long/)),
]);

/** A machine under load may be slow enough to look silent, so how often is asked is not certain here. */
const least = { least: 1 };
const silentCases: ReadonlyMap<string, Case> = new Map<string, Case>([
  ["no first token once", { errors: [{ failure: "stall" }], ends: "completed", requests: least }],
  ["silence once", { errors: [{ failure: "stall", after: 3 }], ends: "completed", requests: least }],
  ["slow tokens", { errors: slowly(), ends: "completed", requests: least }],
  [
    "no first token ever",
    { errors: [{ failure: "stall" }], ends: failed("stalled", /answer within 1000 ms/), requests: least },
  ],
  [
    "silence for ever",
    {
      errors: [{ failure: "stall", after: 2 }],
      ends: failed("stalled", /fell silent for 1000 ms|within 1000 ms/),
      requests: least,
    },
  ],
]);

/** All together it takes longer than the longest silence, in every attempt. */
function slowly(): readonly StepAnswer[] {
  return Array.from({ length: 9 }, () => ({ delayMs: 120 }));
}

/** Answers each child as its case says, and counts how often it asked. */
function playCases(played: ReadonlyMap<string, Case>) {
  const asked = new Map<string, number>();
  const respond: StepFunction = (request) => {
    const task = taskOf(request);
    const attempt = asked.get(task) ?? 0;
    asked.set(task, attempt + 1);
    const { errors = [], ends = "completed" } = played.get(task) ?? {};
    const failure = ends === "completed" ? errors[attempt] : (errors[attempt] ?? errors.at(-1));
    return { text: `${words}${task}.`, ...failure };
  };
  return { asked, respond };
}

async function runCases(played: ReadonlyMap<string, Case>, options: Omit<ErrorStageOptions, "url">) {
  const { asked, respond } = playCases(played);
  const { url } = await startProvider(respond);
  const { runtime } = createErrorStage({ url, ...options });
  await using session = await runtime.open();
  // What is loaded with the first request would hold up all others.
  await session.spawn("general-purpose", promptOf("nothing special")).result;
  const run = async (task: string) => {
    const ending = await session.spawn("general-purpose", promptOf(task)).result;
    return { task, ending, sent: asked.get(task) ?? 0 };
  };
  for (const { task, ending, sent } of await Promise.all([...played.keys()].map(run))) {
    const { ends = "completed", requests = 0 } = played.get(task) ?? {};
    const label = `${options.model}: ${task}`;
    const done = { status: "completed", reason: "end_turn", text: `${words}${task}.` };
    expect.soft(ending, label).toMatchObject(ends === "completed" ? done : ends);
    if (typeof requests === "number") expect.soft(sent, label).toBe(requests);
    else expect.soft(sent, label).toBeGreaterThanOrEqual(requests.least);
  }
}

describe("[MDL-6] twenty children at the same time, each met by a trouble of its own", () => {
  test.each([claude, foreign])("all end with the right status and reason (%s)", async (model) => {
    expect(cases.size).toBe(20);
    await runCases(cases, { model });
  });

  test("also where the provider falls silent, by the limits in the settings", async () => {
    const limits = { model: { firstTokenSeconds: 1, betweenTokensSeconds: 1 } };
    await Promise.all([claude, foreign].map((model) => runCases(silentCases, { model, limits, retries: 3 })));
  });
});

/** Keeps requests inside until they are let go, and counts them. */
function createCrowd() {
  let inside = 0;
  let door = Promise.withResolvers<void>();
  let full = { size: Number.POSITIVE_INFINITY, ...Promise.withResolvers<void>() };
  return {
    inside: () => inside,
    /** Resolves when so many are inside. */
    gathered(size: number): Promise<void> {
      full = { size, ...Promise.withResolvers<void>() };
      if (inside >= size) full.resolve();
      return full.promise;
    },
    letGo(): void {
      inside = 0;
      door.resolve();
      door = Promise.withResolvers();
    },
    async stay(): Promise<void> {
      inside += 1;
      if (inside >= full.size) full.resolve();
      await door.promise;
    },
  };
}

describe("[MDL-6] a burst of 429 for twenty children at the same time", () => {
  test.each([
    ["with a wish", { failure: "rate-limited", retryAfterMs: 1000 }],
    ["without one", { failure: "rate-limited" }],
  ] as const)("%s fails none of them, and no one is refused a second time", async (_how, refusal) => {
    const refused = new Set<string>();
    const provider = await startProvider((request) => {
      const task = taskOf(request);
      if (!refused.has(task)) {
        refused.add(task);
        return refusal;
      }
      return request.messages.length < 4 ? { calls: [noteCall(request)] } : `Done ${task}.`;
    });
    const { runtime } = createErrorStage({ url: provider.url, retries: 1 });
    await using session = await runtime.open();
    const tasks = Array.from({ length: 20 }, (_, index) => String(index));
    const ended = await Promise.all(
      tasks.map((task) => session.spawn("general-purpose", promptOf(task)).result),
    );
    expect(ended.map(({ status, text }) => [status, text])).toEqual(
      tasks.map((task) => ["completed", `Done ${task}.`]),
    );
    expect(provider.requests).toHaveLength(20 + 20 * 3);
  });

  test("halves the number of requests immediately, which then rises with each full round of answers", async () => {
    const crowd = createCrowd();
    let isBurst = true;
    let isOpen = false;
    const { url } = await startProvider(async (request) => {
      const refuses = isBurst;
      if (!isOpen) await crowd.stay();
      if (refuses) return { failure: "rate-limited", retryAfterMs: 1000 };
      return request.messages.length < 10 ? { calls: [noteCall(request)] } : "Done.";
    });
    const { runtime, pauses } = createErrorStage({ url });
    await using session = await runtime.open();
    /** After it no request is under way any more, unless at the gate. */
    const settle = async () => {
      for (let calm = 0; calm < 20; calm = pauses() === 0 ? calm + 1 : 0) await fetch(`${url}/v1/models`);
    };
    const handles = Array.from({ length: 20 }, (_, index) =>
      session.spawn("general-purpose", promptOf(String(index))),
    );
    await crowd.gathered(20);
    isBurst = false;
    crowd.letGo();
    for (const concurrency of [10, 11, 12, 13]) {
      await crowd.gathered(concurrency);
      await settle();
      expect(crowd.inside()).toBe(concurrency);
      crowd.letGo();
    }
    isOpen = true;
    crowd.letGo();
    const ended = await Promise.all(handles.map(({ result }) => result));
    expect(ended.map(({ status }) => status)).toEqual(handles.map(() => "completed"));
  });
});

test("[MDL-6] a stated Retry-After holds for all siblings, whatever answers to earlier requests still arrive", async () => {
  const [siblings, speed, pauseMs] = [8, 100, 20_000];
  const crowd = createCrowd();
  let refusedAt: number | undefined;
  const refused = Promise.withResolvers<void>();
  const early: number[] = [];
  const { url } = await startProvider(async (request) => {
    const at = performance.now();
    if (refusedAt !== undefined) {
      early.push((at - refusedAt) * speed);
      return "Done.";
    }
    await crowd.stay();
    if (taskOf(request) !== "0") {
      await refused.promise;
      return { calls: [noteCall(request)] };
    }
    refusedAt = performance.now();
    return { failure: "rate-limited", retryAfterMs: pauseMs };
  });
  const { runtime } = createErrorStage({ url, speed });
  await using session = await runtime.open();
  const handles = Array.from({ length: siblings }, (_, index) =>
    session.spawn("general-purpose", promptOf(String(index))),
  );
  const watching = (async () => {
    for await (const { type } of handles[0]?.events ?? []) if (type === "model-retried") break;
    refused.resolve();
  })();
  await crowd.gathered(siblings);
  crowd.letGo();
  await watching;
  const ended = await Promise.all(handles.map(({ result }) => result));
  expect(ended.map(({ status }) => status)).toEqual(handles.map(() => "completed"));
  expect(early).toHaveLength(siblings);
  expect(Math.min(...early)).toBeGreaterThanOrEqual(pauseMs);
});

/** A server without manners: what each child gets is written to the bare answer, which is never ended for it. */
async function startRudeServer(answers: ReadonlyMap<string, (response: ServerResponse) => void>) {
  const sockets = new Set<Promise<unknown>>();
  const server = createServer(async (incoming, response) => {
    const task = /Task «([^»]*)»/.exec(await text(incoming))?.[1] ?? "";
    answers.get(task)?.(response);
  });
  server.on("connection", (socket) => sockets.add(new Promise((resolve) => socket.on("close", resolve))));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
  return { url: `http://127.0.0.1:${port}`, sockets };
}

function sse(...events: readonly Readonly<Record<string, unknown>>[]): string {
  return events.map((event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

const begin = { type: "message_start", message: { id: "m", model: claude, usage: { input_tokens: 5 } } };
const whole = sse(
  begin,
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "All of it." } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } },
  { type: "message_stop" },
);
const stream = { "content-type": "text/event-stream" };

type RudeAnswer = readonly [(response: ServerResponse) => void, Partial<RunEnding>];
const rudeAnswers: ReadonlyMap<string, RudeAnswer> = new Map<string, RudeAnswer>([
  [
    "a whole answer",
    [
      (response) => void response.writeHead(200, stream).write(whole),
      { status: "completed", text: "All of it." },
    ],
  ],
  ["not even a head", [() => undefined, failed("stalled", /did not start an answer/)]],
  ["a head alone", [(response) => response.writeHead(200, stream).flushHeaders(), failed("stalled", /./)]],
  [
    "a beginning alone",
    [(response) => void response.writeHead(200, stream).write(sse(begin)), failed("stalled", /./)],
  ],
  [
    "half of an error",
    [
      (response) => void response.writeHead(500, { "content-length": "500" }).write('{"type":"err'),
      failed("stalled", /./),
    ],
  ],
  [
    "half an event",
    [
      (response) => void response.writeHead(200, stream).write(`${sse(begin)}event: content_bl`),
      failed("stalled", /./),
    ],
  ],
  [
    "nothing but signs of life",
    [
      (response) => {
        response.writeHead(200, stream).write(sse(begin));
        const pings = setInterval(() => response.write(sse({ type: "ping" })), 20);
        response.once("close", () => clearInterval(pings));
      },
      failed("stalled", /./),
    ],
  ],
]);

describe("[MDL-6] a server that never closes what it began", () => {
  test("keeps no child, no connection and no timer for ever", async () => {
    const timers = countTimers();
    const { url, sockets } = await startRudeServer(
      new Map([...rudeAnswers].map(([task, [answer]]) => [task, answer])),
    );
    // Timers of this length would be seen at the end.
    const limits = { model: { firstTokenSeconds: 1, betweenTokensSeconds: 1000 } };
    const { runtime } = createErrorStage({ url, limits, retries: 1 });
    const session = await runtime.open();
    const tasks = Array.from({ length: 21 }, (_, index) => [...rudeAnswers.keys()][index % rudeAnswers.size]);
    const ended = await Promise.all(
      tasks.map(async (task = "") => ({
        task,
        ending: await session.spawn("Explore", promptOf(task)).result,
      })),
    );
    for (const { task, ending } of ended)
      expect.soft(ending, task).toMatchObject(rudeAnswers.get(task)?.[1] ?? {});
    await session[Symbol.asyncDispose]();
    await Promise.all(sockets);
    expect(countTimers()).toBeLessThanOrEqual(timers);
  });
});

/** Those that would keep the process alive. */
function countTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

describe("[MDL-6] a server that is not there", () => {
  test("fails every child with the address it tried", async () => {
    const provider = await startFakeProvider({ script: [] });
    await provider[Symbol.asyncDispose]();
    const { runtime } = createErrorStage({ url: provider.url });
    await using session = await runtime.open();
    const ended = await spawnTwenty(session);
    for (const ending of ended)
      expect
        .soft(ending)
        .toMatchObject(
          failed("connection-failed", new RegExp(`${new URL(provider.url).host}.*ECONNREFUSED`)),
        );
  });

  test("and comes back in time fails none", async () => {
    const gone = await startFakeProvider({ script: [] });
    await gone[Symbol.asyncDispose]();
    const { runtime } = createErrorStage({ url: gone.url, retries: 10 });
    await using session = await runtime.open();
    const back = (async () => {
      for await (const { event } of session.tasks.watch()) if (event.type === "model-retried") break;
      const port = Number(new URL(gone.url).port);
      const provider = await startFakeProvider({ respond: () => "Back.", port });
      onTestFinished(() => provider[Symbol.asyncDispose]());
    })();
    const ended = await spawnTwenty(session);
    await back;
    expect(ended.map(({ status, text }) => `${status}: ${text}`)).toEqual(
      ended.map(() => "completed: Back."),
    );
  });
});

function spawnTwenty(session: Session): Promise<readonly RunEnding[]> {
  return Promise.all(
    Array.from({ length: 20 }, (_, index) => session.spawn("Explore", promptOf(String(index))).result),
  );
}

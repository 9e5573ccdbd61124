import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { describe, expect, test } from "vitest";
import type { Model, ModelEvent, ModelRequest } from "./model.ts";
import { ModelError, type ModelErrorCode } from "./model-error.ts";
import { delayBefore, readMaxAttempts, withRetry } from "./model-factory.ts";
import type { QuotaWindow } from "./quota-window.ts";
import { createCoolDowns, createRequestGate } from "./request-gate.ts";

const { signal } = new AbortController();
const request: ModelRequest = { system: [], tools: [], messages: [] };
const begun: ModelEvent = { type: "message-started", id: "m", model: "x" };
const delta: ModelEvent = { type: "text-delta", index: 0, text: "a" };
const ended: ModelEvent = {
  type: "message-ended",
  id: "m",
  model: "x",
  message: { role: "assistant", content: [] },
  stopReason: "end_turn",
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
};

type Step = ModelEvent | Error;

/** Each attempt plays the next list; an error in it is thrown. */
function playing(...attempts: (readonly Step[])[]): Model & { readonly asked: () => number } {
  let asked = 0;
  return {
    facts: { id: "m", provider: "p", contextWindow: 1, maxOutputTokens: 1, supportsServerTools: false },
    asked: () => asked,
    async *stream() {
      const steps = attempts[Math.min(asked, attempts.length - 1)] ?? [];
      asked += 1;
      for (const step of steps) {
        if (step instanceof Error) throw step;
        yield step;
      }
    },
  };
}

function setUp(
  options: {
    readonly maxAttempts?: number;
    readonly maxWaitMs?: number;
    readonly random?: () => number;
  } = {},
) {
  let now = 0;
  const clock: WaitClock = {
    now: () => now,
    async sleep(milliseconds, signal) {
      signal.throwIfAborted();
      now += milliseconds;
    },
  };
  const random = options.random ?? (() => 0);
  const coolDowns = createCoolDowns(clock, random);
  const patient = (model: Model): Model =>
    withRetry(model, { coolDown: coolDowns.of("p", "m"), clock, maxAttempts: 3, ...options, random });
  return { patient, clock, coolDowns };
}

async function collect(model: Model, signal = new AbortController().signal): Promise<readonly ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream(request, { signal })) events.push(event);
  return events;
}

function failure(code: ModelErrorCode, retryAfterMs?: number): ModelError {
  return new ModelError(code, `it was ${code}`, retryAfterMs === undefined ? {} : { retryAfterMs });
}

describe("withRetry [MDL-6]", () => {
  test.each<ModelErrorCode>([
    "rate-limited",
    "overloaded",
    "server-error",
    "connection-failed",
    "stream-cut",
    "stream-malformed",
    "stalled",
  ])("%s is tried again, and said", async (code) => {
    const model = playing([failure(code)], [begun, ended]);
    const events = await collect(setUp().patient(model));
    expect(events).toEqual([
      { type: "attempt-failed", attempt: 1, maxAttempts: 3, delayMs: 0, code, message: `it was ${code}` },
      begun,
      ended,
    ]);
  });

  test.each<ModelErrorCode>([
    "context-too-long",
    "invalid-request",
    "unauthorized",
    "not-found",
    "script-mismatch",
  ])("%s is not tried again", async (code) => {
    const model = playing([failure(code)], [ended]);
    await expect(collect(setUp().patient(model))).rejects.toMatchObject({ code });
    expect(model.asked()).toBe(1);
  });

  test("an error that names how many attempts are worth it gets no more", async () => {
    const refused = new ModelError("connection-failed", "Cannot reach localhost:1 (ECONNREFUSED).", {
      maxAttempts: 2,
    });
    const model = playing([refused]);
    const seen: ModelEvent[] = [];
    const { patient } = setUp({ maxAttempts: 11 });
    await expect(async () => {
      for await (const event of patient(model).stream(request, { signal })) seen.push(event);
    }).rejects.toThrow("Cannot reach localhost:1");
    expect(model.asked()).toBe(2);
    expect(seen).toMatchObject([{ type: "attempt-failed", attempt: 1, maxAttempts: 2 }]);
  });

  test("a provider that was never reached gets fewer attempts than one that was [MDL-6]", async () => {
    const unreachable = new ModelError("connection-failed", "Cannot reach nohost.invalid (ENOTFOUND).", {
      maxAttemptsUnreached: 2,
    });
    const never = playing([unreachable]);
    await expect(collect(setUp({ maxAttempts: 5 }).patient(never))).rejects.toThrow("nohost.invalid");
    expect(never.asked()).toBe(2);

    const once = playing([begun, ended], [unreachable], [unreachable], [unreachable], [begun, ended]);
    const model = setUp({ maxAttempts: 5 }).patient(once);
    await collect(model);
    expect((await collect(model)).at(-1)).toEqual(ended);
    expect(once.asked()).toBe(5);
  });

  test("an error that is no error of the provider is not tried again", async () => {
    const model = playing([new TypeError("ours")], [ended]);
    await expect(collect(setUp().patient(model))).rejects.toThrow("ours");
    expect(model.asked()).toBe(1);
  });

  test("an answer that broke off in the middle is started anew after the event that it failed", async () => {
    const model = playing([begun, delta, failure("stream-cut")], [begun, delta, ended]);
    const types = (await collect(setUp().patient(model))).map(({ type }) => type);
    expect(types).toEqual([
      "message-started",
      "text-delta",
      "attempt-failed",
      "message-started",
      "text-delta",
      "message-ended",
    ]);
  });

  test("after the end of a message nothing is repeated, whatever comes", async () => {
    const model = playing([begun, ended, failure("stream-cut")], [begun, ended]);
    expect(await collect(setUp().patient(model))).toEqual([begun, ended]);
    expect(model.asked()).toBe(1);
  });

  test("the last attempt's error is thrown when the attempts are used up", async () => {
    const model = playing([failure("overloaded")], [failure("overloaded")], [failure("stalled")]);
    await expect(collect(setUp().patient(model))).rejects.toMatchObject({ code: "stalled" });
    expect(model.asked()).toBe(3);
  });

  test("the pause that the provider asks for is waited for", async () => {
    const { patient, clock } = setUp();
    await collect(patient(playing([failure("rate-limited", 7000)], [ended])));
    expect(clock.now()).toBe(7000);
  });

  test("a pause longer than all waiting may take is answered with the error immediately", async () => {
    const { patient, clock } = setUp({ maxWaitMs: 10_000 });
    const model = playing([failure("rate-limited", 3_600_000)], [ended]);
    await expect(collect(patient(model))).rejects.toMatchObject({ code: "rate-limited" });
    expect(clock.now()).toBe(0);
  });

  test("all pauses together stay within the limit", async () => {
    const { patient, clock } = setUp({ maxWaitMs: 10_000, maxAttempts: 15 });
    await expect(collect(patient(playing([failure("rate-limited", 4000)])))).rejects.toMatchObject({
      code: "rate-limited",
    });
    expect(clock.now()).toBe(8000);
  });

  test("the refusal of one agent holds back the others of that model", async () => {
    const { patient, clock, coolDowns } = setUp({ maxAttempts: 2 });
    const model = playing([failure("rate-limited", 6000)], [ended]);
    const waiting = patient(model)
      .stream(request, { signal: new AbortController().signal })
      [Symbol.asyncIterator]();
    await waiting.next();
    await coolDowns.of("p", "m").wait(new AbortController().signal);
    expect(clock.now()).toBe(6000);
  });

  test("and also requests that wait at the gate meanwhile, which are let in only after the pause", async () => {
    const { clock, coolDowns } = setUp();
    const gate = createRequestGate();
    for (const pass of await Promise.all([gate.enter(signal), gate.enter(signal)])) pass.leave("refused");
    expect(gate.limit()).toBe(1);
    const refuse = Promise.withResolvers<void>();
    const askedAt: number[] = [];
    const model: Model = {
      facts: playing().facts,
      async *stream() {
        askedAt.push(clock.now());
        if (askedAt.length === 1) {
          await refuse.promise;
          throw failure("rate-limited", 6000);
        }
        yield ended;
      },
    };
    const options = { coolDown: coolDowns.of("p", "m"), gate, clock, random: () => 0, maxAttempts: 1 };
    const first = collect(withRetry(model, options));
    const second = collect(withRetry(model, options));
    await new Promise(setImmediate);
    refuse.resolve();
    await expect(first).rejects.toMatchObject({ code: "rate-limited" });
    expect(await second).toEqual([ended]);
    expect(askedAt).toEqual([0, 6000]);
  });

  test("an abort ends the waiting with its reason", async () => {
    const controller = new AbortController();
    const reason = new Error("stop");
    const run = async (): Promise<void> => {
      const model = setUp().patient(playing([failure("overloaded", 9000)], [ended]));
      for await (const { type } of model.stream(request, { signal: controller.signal })) {
        if (type === "attempt-failed") controller.abort(reason);
      }
    };
    await expect(run()).rejects.toBe(reason);
  });

  test("an error that the abort itself caused is the abort", async () => {
    const controller = new AbortController();
    const reason = new Error("stop");
    const model: Model = {
      facts: playing().facts,
      // biome-ignore lint/correctness/useYield: it fails before it says anything
      async *stream() {
        controller.abort(reason);
        throw failure("stream-cut");
      },
    };
    await expect(collect(setUp().patient(model), controller.signal)).rejects.toBe(reason);
  });
});

describe("delayBefore [MDL-6]", () => {
  test.each([
    [1, 0.999, 500],
    [2, 0.999, 1000],
    [4, 0.5, 2000],
    [7, 0.999, 31_968],
    [14, 0.999, 31_968],
  ])("attempt %i with chance %d waits about %i ms", (attempt, chance, expected) => {
    expect(delayBefore(attempt, failure("overloaded"), () => chance)).toBeCloseTo(expected, -1);
  });

  test("the provider's pause is never undercut, and not met by all at the same time", () => {
    expect(delayBefore(1, failure("rate-limited", 10_000), () => 0)).toBe(10_000);
    expect(delayBefore(1, failure("rate-limited", 10_000), () => 0.9)).toBe(10_900);
  });
});

test.each([
  [undefined, 11],
  ["", 11],
  ["0", 1],
  ["3", 4],
  ["99", 16],
  ["-1", 11],
  ["many", 11],
])("CLAUDE_CODE_MAX_RETRIES=%j gives %i attempts [MDL-6]", (value, attempts) => {
  expect(readMaxAttempts(value)).toBe(attempts);
});

test("[LIM-5] a request that waits for its turn says so, and leaves no place taken when nothing waits any more", async () => {
  const gate = createRequestGate();
  const always = new AbortController().signal;
  (await gate.enter(always)).leave("refused");
  const inside = await gate.enter(always);
  const { clock, coolDowns } = setUp();
  const coolDown = coolDowns.of("p", "m");
  const options = { coolDown, gate, clock, maxAttempts: 3, random: () => 0, signOfLifeMs: 1 };
  const patient = withRetry(playing([begun, ended]), options);
  const waiting = patient.stream(request, { signal: always })[Symbol.asyncIterator]();
  expect(await waiting.next()).toEqual({ done: false, value: { type: "request-waiting" } });
  expect(await waiting.next()).toEqual({ done: false, value: { type: "request-waiting" } });
  await waiting.return?.();
  inside.leave("answered");
  expect((await collect(patient)).at(-1)?.type).toBe("message-ended");
});

test("a used-up quota is known to all before the next one may ask [LIM-7]", async () => {
  const order: string[] = [];
  const quota: QuotaWindow = {
    now: () => 0,
    standing: () => ({ type: "open" }),
    enter: async () => ({ type: "entered", turn: { leave: () => void order.push("turn is free") } }),
    answered: async () => undefined,
    async refused(resetsInMs) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      order.push("closed");
      return resetsInMs;
    },
  };
  const { clock, coolDowns } = setUp();
  const used = new ModelError("rate-limited", "Used up.", { quotaResetsInMs: 5, status: 429 });
  const options = { coolDown: coolDowns.of("p", "m"), clock, quota, maxAttempts: 3, random: () => 0 };
  await expect(collect(withRetry(playing([used]), options))).rejects.toMatchObject({ closedUntil: 5 });
  expect(order.slice(0, 2)).toEqual(["closed", "turn is free"]);
});

import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { AssistantBlock } from "@retinue/core/conversation/message.ts";
import type { Model, ModelEvent, ModelRequest } from "@retinue/core/models/model.ts";
import { ModelError, type ModelErrorCode } from "@retinue/core/models/model-error.ts";
import type { Step, StepError } from "./script.ts";

/** What the contract needs of a test runner; vitest and jest have it. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: () => Promise<void>): unknown;
  expect(value: unknown): { toEqual(expected: unknown): unknown; toBe(expected: unknown): unknown };
}

export interface ContractSubject {
  readonly model: Model;
  /** How many requests are still being answered on the other side; absent where there is no other side. */
  readonly openRequests?: (() => number) | undefined;
  dispose(): Promise<void>;
}

export interface ContractOptions {
  /** How long the model waits for a token before it calls the answer stalled. */
  readonly stallMs: number;
}

/** Makes the model under test so that it answers by these steps. */
export type CreateSubject = (steps: readonly Step[], options: ContractOptions) => Promise<ContractSubject>;

export interface ContractTraits {
  /** Errors this model cannot meet, such as a stall it leaves to its caller. */
  readonly exceptErrors?: readonly StepError[] | undefined;
  /** False where the protocol has no thinking. */
  readonly hasThinking?: boolean | undefined;
}

/** Functions of a test runner, some of which have parts of their own. */
export const isTestRunner = checks.shape({ describe: checks.call, test: checks.call, expect: checks.call }, [
  "describe",
  "test",
  "expect",
]);

/** The rules every Model keeps, as tests of the runner that is passed in. */
export function describeModelContract(
  name: string,
  create: CreateSubject,
  runner: TestRunner,
  traits: ContractTraits = {},
): void {
  checkArgument("The first argument of describeModelContract()", checks.filled, name);
  checkArgument("The second argument of describeModelContract()", checks.call, create);
  checkArgument("The third argument of describeModelContract()", isTestRunner, runner);
  const { describe, test, expect } = runner;
  const withModel = async (
    steps: readonly Step[],
    use: (subject: ContractSubject) => Promise<void>,
    stallMs = 20_000,
  ) => {
    const subject = await create(steps, { stallMs });
    try {
      await use(subject);
    } finally {
      await subject.dispose();
    }
  };

  describe(`${name} keeps the contract of a model`, () => {
    describeAnswers({ describe, test, expect }, withModel);
    describeKinds({ describe, test, expect }, withModel, traits);
    describeErrors({ describe, test, expect }, withModel, traits);
    describeAborts({ describe, test, expect }, withModel);
  });
}

type WithModel = (
  steps: readonly Step[],
  use: (subject: ContractSubject) => Promise<void>,
  stallMs?: number,
) => Promise<void>;

/** How an answer arrives. */
function describeAnswers({ test, expect }: TestRunner, withModel: WithModel): void {
  test("an answer ends with exactly one message-ended that holds the blocks in order", () =>
    withModel([{ text: "Reading both.", calls: twoCalls }], async ({ model }) => {
      const { events } = await drain(model, request());
      const ends = events.filter(({ type }) => type === "message-ended");
      expect(ends.length).toBe(1);
      expect(events.at(-1)?.type).toBe("message-ended");
      expect(events[0]?.type).toBe("message-started");
      expect(messageOf(events)).toEqual(blocksByIndex(events));
    }));

  test("deltas add up to the blocks that end", () =>
    withModel([{ text: "Zwei Dateien, 漢字 und 👩‍👩‍👧.", calls: twoCalls }], async ({ model }) => {
      const { events } = await drain(model, request());
      for (const event of events) {
        if (event.type === "block-ended")
          expect(readDeltas(events, event.index)).toEqual(contentOf(event.block));
      }
      expect(events.filter(({ type }) => type === "text-delta").length > 1).toBe(true);
    }));

  test("text, calls and their parsed input arrive as they were sent", () =>
    withModel([{ text: "Now.", calls: twoCalls }], async ({ model }) => {
      const { events } = await drain(model, request());
      const calls = messageOf(events).flatMap((block) =>
        block.type === "tool_use" ? [{ name: block.name, input: block.input }] : [],
      );
      expect(calls).toEqual(twoCalls);
      expect(messageOf(events).find(({ type }) => type === "text")).toEqual({ type: "text", text: "Now." });
      expect(endOf(events)?.stopReason).toBe("tool_use");
    }));
}

/** Thinking, tokens and reasons to stop. */
function describeKinds({ test, expect }: TestRunner, withModel: WithModel, traits: ContractTraits): void {
  if (traits.hasThinking !== false) {
    test("thinking is kept, and the next request with it is accepted", () =>
      withModel([{ thinking: "Hm, so.", text: "First." }, "Second."], async ({ model }) => {
        const first = endOf((await drain(model, request())).events);
        const thought = first?.message.content.find(({ type }) => type === "thinking");
        expect(thought !== undefined && "thinking" in thought && thought.thinking).toBe("Hm, so.");
        const messages = [...request().messages, ...(first === undefined ? [] : [first.message]), ...more];
        const { events } = await drain(model, { ...request(), messages });
        expect(endOf(events)?.stopReason).toBe("end_turn");
      }));
  }

  test("tokens are counted and never negative", () =>
    withModel(["Some words as an answer."], async ({ model }) => {
      const { events } = await drain(model, request());
      const usage = endOf(events)?.usage;
      expect(Object.values(usage ?? { none: -1 }).every((count) => count >= 0)).toBe(true);
      expect((usage?.outputTokens ?? 0) > 0 && (usage?.inputTokens ?? 0) > 0).toBe(true);
    }));

  for (const [stopReason, expected] of stopReasons) {
    test(`an answer that stops by ${stopReason} says so`, () =>
      withModel([{ text: "Until here", stopReason }], async ({ model }) => {
        const { events } = await drain(model, request());
        expect(endOf(events)?.stopReason).toBe(expected);
      }));
  }
}

function describeErrors({ test, expect }: TestRunner, withModel: WithModel, traits: ContractTraits): void {
  for (const [failure, after, code] of errors) {
    if (traits.exceptErrors?.includes(failure)) continue;
    const when = after === undefined ? "before the answer" : `after ${after} deltas`;
    test(`${failure} ${when} is a ModelError with the code ${code}`, () =>
      withModel(
        [{ text: longText, failure, after }],
        async ({ model }) => {
          const { events, error } = await drain(model, request());
          expect(error instanceof ModelError ? error.code : error).toBe(code);
          expect(events.some(({ type }) => type === "message-ended")).toBe(false);
        },
        failure === "stall" ? 100 : 20_000,
      ));
  }

  test("the wait that a provider asks for is passed on", () =>
    withModel([{ failure: "rate-limited", retryAfterMs: 7_000 }], async ({ model }) => {
      const { error } = await drain(model, request());
      expect(error instanceof ModelError && error.retryAfterMs).toBe(7_000);
      expect(error instanceof ModelError && error.mayPass).toBe(true);
    }));
}

function describeAborts({ test, expect }: TestRunner, withModel: WithModel): void {
  test("an aborted signal means that nothing is asked", () =>
    withModel([{ text: "never", times: "any" }], async ({ model, openRequests }) => {
      const { events, error } = await drain(model, request(), AbortSignal.abort(new Error("too late")));
      expect(events).toEqual([]);
      expect(error instanceof Error && !(error instanceof ModelError)).toBe(true);
      expect(openRequests?.() ?? 0).toBe(0);
    }));

  for (const [when, after] of [
    ["before the first token", undefined],
    ["in the middle of the answer", 2],
  ] as const) {
    test(`an abort ${when} ends the stream immediately and lets go of the provider`, () =>
      withModel([{ text: longText, failure: "stall", after }], async ({ model, openRequests }) => {
        const controller = new AbortController();
        const draining = drain(model, request(), controller.signal, (count) => {
          if (after !== undefined && count >= after) setImmediate(() => controller.abort());
        });
        if (after === undefined) setTimeout(() => controller.abort(), 20);
        const { events, error } = await draining;
        expect(error !== undefined && !(error instanceof ModelError)).toBe(true);
        expect(events.some(({ type }) => type === "message-ended")).toBe(false);
        expect(await becomesZero(openRequests)).toBe(true);
      }));
  }

  test("a reader that stops early lets go of the provider", () =>
    withModel([{ text: longText, failure: "stall", after: 2 }], async ({ model, openRequests }) => {
      for await (const event of model.stream(request(), { signal: new AbortController().signal })) {
        if (event.type === "text-delta") break;
      }
      expect(await becomesZero(openRequests)).toBe(true);
    }));

  test("two answers at the same time do not mix", () =>
    withModel(
      [
        { match: "left", text: "L".repeat(200), times: 1 },
        { match: "right", text: "R".repeat(200), times: 1 },
      ],
      async ({ model }) => {
        const [left, right] = await Promise.all([
          drain(model, request("left")),
          drain(model, request("right")),
        ]);
        expect(messageOf(left.events)).toEqual([{ type: "text", text: "L".repeat(200) }]);
        expect(messageOf(right.events)).toEqual([{ type: "text", text: "R".repeat(200) }]);
      },
    ));
}

const twoCalls = [
  { name: "Read", input: { path: "a.txt", lines: [1, 2] } },
  { name: "Read", input: { path: 'b "quoted" ü.txt' } },
];

const more = [{ role: "user" as const, content: "And now?" }];

const longText = "A sentence that is long enough to need several deltas, whatever their size may be. ".repeat(
  4,
);

const stopReasons = [
  ["end_turn", "end_turn"],
  ["max_tokens", "max_tokens"],
  ["refusal", "refusal"],
] as const;

const errors: readonly (readonly [StepError, number | undefined, ModelErrorCode])[] = [
  ["rate-limited", undefined, "rate-limited"],
  ["overloaded", undefined, "overloaded"],
  ["overloaded", 2, "overloaded"],
  ["server-error", undefined, "server-error"],
  ["context-too-long", undefined, "context-too-long"],
  ["invalid-request", undefined, "invalid-request"],
  ["unauthorized", undefined, "unauthorized"],
  ["not-found", undefined, "not-found"],
  ["connection-failed", undefined, "connection-failed"],
  ["cut", 0, "stream-cut"],
  ["cut", 3, "stream-cut"],
  ["malformed", 1, "stream-malformed"],
  ["stall", undefined, "stalled"],
  ["stall", 2, "stalled"],
];

function request(text = "Read two files."): ModelRequest {
  const schema = { type: "object", properties: { path: { type: "string" } } };
  return {
    system: ["You read files."],
    tools: [{ name: "Read", description: "Reads a file.", inputSchema: schema }],
    messages: [{ role: "user", content: text }],
    maxTokens: 1_000,
  };
}

/** Everything a model said, and the error that ended it if there was one. */
async function drain(
  model: Model,
  asked: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
  onDelta: (count: number) => void = () => undefined,
): Promise<{ readonly events: readonly ModelEvent[]; readonly error?: unknown }> {
  const events: ModelEvent[] = [];
  let deltas = 0;
  try {
    for await (const event of model.stream(asked, { signal })) {
      events.push(event);
      if (event.type !== "text-delta") continue;
      deltas += 1;
      onDelta(deltas);
    }
    return { events };
  } catch (error) {
    return { events, error };
  }
}

function endOf(events: readonly ModelEvent[]) {
  return events.find((event) => event.type === "message-ended");
}

function messageOf(events: readonly ModelEvent[]): readonly AssistantBlock[] {
  return endOf(events)?.message.content ?? [];
}

function blocksByIndex(events: readonly ModelEvent[]): readonly AssistantBlock[] {
  const ended = events.filter((event) => event.type === "block-ended");
  return ended.toSorted((a, b) => a.index - b.index).map(({ block }) => block);
}

function readDeltas(events: readonly ModelEvent[], index: number): unknown {
  const pieces = events.flatMap((event) => {
    if (event.type === "input-delta" && event.index === index) return [event.json];
    const isText = event.type === "text-delta" || event.type === "thinking-delta";
    return isText && event.index === index ? [event.text] : [];
  });
  const isInput = events.some((event) => event.type === "input-delta" && event.index === index);
  return isInput ? JSON.parse(pieces.join("")) : pieces.join("");
}

/** What the deltas of a block must add up to. */
function contentOf(block: AssistantBlock): unknown {
  if (block.type === "text") return block.text;
  if (block.type === "thinking") return block.thinking;
  return block.type === "tool_use" ? block.input : "";
}

/** The other side learns of a closed connection a moment later. */
async function becomesZero(count: (() => number) | undefined): Promise<boolean> {
  for (let tries = 0; tries < 500; tries += 1) {
    if ((count?.() ?? 0) === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

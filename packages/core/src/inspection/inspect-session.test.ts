import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sumTranscriptUsage } from "../journal/transcript-usage.ts";
import { createAgentFold, type FoldedAgent } from "./agent-fold.ts";
import { inspectSession, type SessionParts } from "./inspect-session.ts";
import type { InspectedAgent, Inspection } from "./inspection.ts";

const start = Date.parse("2026-10-01T10:00:00.000Z");
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();
const usage = (input: number, output: number, read = 0, write = 0) => ({
  input_tokens: input,
  output_tokens: output,
  cache_read_input_tokens: read,
  cache_creation_input_tokens: write,
});

let count = 0;
const nextUuid = (): string => {
  count += 1;
  return `line-${count}`;
};
const line = (type: string, seconds: number, fields: object): JsonRecord => ({
  type,
  uuid: nextUuid(),
  timestamp: at(seconds),
  ...fields,
});
const prompt = (seconds: number, text: string, fields: object = {}): JsonRecord =>
  line("user", seconds, { message: { role: "user", content: text }, ...fields });
const answer = (seconds: number, id: string, fields: object = {}, message: object = {}): JsonRecord =>
  line("assistant", seconds, {
    message: { id, model: "claude-opus-5", role: "assistant", content: [], usage: usage(10, 5), ...message },
    ...fields,
  });
const calling = (id: string, name: string, input: object = {}) => ({
  content: [{ type: "tool_use", id, name, input }],
  stop_reason: "tool_use",
});
const saying = (text: string) => ({ content: [{ type: "text", text }], stop_reason: "end_turn" });
const result = (seconds: number, id: string, fields: object = {}, block: object = {}): JsonRecord =>
  line("user", seconds, {
    message: {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content: "done", ...block }],
    },
    ...fields,
  });
const ending = (seconds: number, fields: object = {}): JsonRecord =>
  line("system", seconds, {
    subtype: "turn_duration",
    durationMs: 1000,
    runEnding: { status: "completed", reason: "end_turn", ...fields },
  });

function fold(lines: readonly JsonRecord[], facts: { isLive?: boolean; now?: number } = {}): FoldedAgent {
  const agent = createAgentFold();
  for (const one of lines) agent.add(one);
  return agent.result({ isLive: facts.isLive ?? false, now: facts.now ?? start });
}

function inspect(
  agents: Readonly<Record<string, readonly JsonRecord[]>>,
  parts: Partial<SessionParts> & { known?: Readonly<Record<string, object>> } = {},
  only?: string,
): Inspection {
  return inspectSession(
    {
      id: "s",
      title: "A title",
      file: "/s.jsonl",
      notes: [],
      now: start,
      agents: Object.entries(agents).map(([id, lines]) => ({
        id,
        folded: fold(lines),
        known: { agentType: "Explore", ...parts.known?.[id] },
      })),
      ...parts,
    },
    only,
  );
}

const callsOf = ({ steps }: Pick<InspectedAgent, "steps">) => steps.filter((step) => step.type === "call");

describe("[LIM-4] what an agent took is reported by its lines", () => {
  test("an answer of several lines counts once, with its last line", () => {
    const { totals } = fold([
      prompt(0, "Go."),
      answer(1, "a", { costUSD: 0.5 }, { usage: usage(1, 1) }),
      answer(2, "a", { costUSD: 0.5 }, { ...calling("c", "Bash"), usage: usage(10, 20, 30, 40) }),
    ]);
    expect(totals).toMatchObject({
      turns: 1,
      toolUses: 1,
      costUsd: 0.5,
      usage: { inputTokens: 10, outputTokens: 20, cacheReadTokens: 30, cacheWriteTokens: 40 },
    });
  });

  test("a cost comes from the line, else from the catalog, and one unknown price makes the sum unknown", () => {
    const lines = [
      answer(1, "a", { costUSD: 0.25 }),
      answer(2, "b", {}, { model: "claude-opus-4-8", usage: usage(1_000_000, 0) }),
    ];
    expect(fold(lines).totals).toMatchObject({ costUsd: 5.25, listPriced: 1, unpriced: 0 });
    const unknown = fold([...lines, answer(3, "c", {}, { model: "nobody-knows" })]).totals;
    expect(unknown).toMatchObject({ pricedCost: 5.25, unpriced: 1 });
    expect(unknown).not.toHaveProperty("costUsd");
  });

  test.each([
    ["another tier", { service_tier: "batch" }],
    ["another speed", { speed: "fast" }],
    ["a cache kept for an hour", { cache_creation: { ephemeral_1h_input_tokens: 5 } }],
  ])("the catalog's price is not taken for %s", (_, more) => {
    const { totals } = fold([answer(1, "a", {}, { usage: { ...usage(5, 5), ...more } })]);
    expect(totals).toMatchObject({ unpriced: 1, listPriced: 0 });
  });

  test("the summary of a compaction is paid for, and is no turn", () => {
    const { totals, steps } = fold([
      line("system", 9, {
        subtype: "compact_boundary",
        compactMetadata: {
          trigger: "auto",
          preTokens: 900,
          postTokens: 100,
          durationMs: 2000,
          summarizer: { by: "model", model: "claude-opus-5", usage: usage(7, 3), costUSD: 0.125 },
        },
      }),
    ]);
    expect(totals).toMatchObject({
      turns: 0,
      compactions: 1,
      costUsd: 0.125,
      usage: { inputTokens: 7, outputTokens: 3 },
    });
    expect(steps[0]).toMatchObject({ at: start + 7000, durationMs: 2000, preTokens: 900, postTokens: 100 });
  });

  test("lines copied by a fork were paid for elsewhere, and a line that appears twice counts once", () => {
    const once = answer(1, "a", { costUSD: 1 });
    const copied = answer(0, "z", { costUSD: 7, forkedFrom: { sessionId: "x" } });
    expect(fold([copied, once, once]).totals).toMatchObject({ turns: 1, costUsd: 1 });
  });

  test("time is split into model, tools and neither, without the pause between two prompts", () => {
    const { totals, runs } = fold([
      prompt(0, "One."),
      answer(4, "a", { durationMs: 3000 }, calling("c", "Bash")),
      result(9, "c", { toolCall: { startedAt: start + 5000, durationMs: 4000 } }),
      answer(11, "b", { durationMs: 2000 }, saying("Done.")),
      ending(11),
      prompt(5000, "Two."),
      answer(5002, "c", { durationMs: 1000 }, saying("Again.")),
      ending(5003),
    ]);
    expect(runs).toHaveLength(2);
    expect(totals).toMatchObject({ durationMs: 14_000, modelMs: 6000, toolMs: 4000, otherMs: 4000 });
  });

  const plan = (seconds: number, fields: object = {}) => ({
    type: "retinue-plan",
    timestamp: at(seconds),
    ...fields,
  });
  const day = 86_400;

  test("the time between a crash and the resumption belongs to no agent: calls that were cut off", () => {
    const cut = "Interrupted: the session ended before a result of this call was recorded.";
    const folded = fold([
      prompt(0, "Go."),
      plan(0),
      answer(2, "a", { durationMs: 2000 }, calling("c", "Bash")),
      result(day, "c", {}, { content: cut, is_error: true }),
      prompt(day + 5, "Continue."),
      plan(day + 5),
      answer(day + 8, "b", { durationMs: 3000 }, saying("Done.")),
      ending(day + 8),
    ]);
    expect(folded.totals).toMatchObject({ durationMs: 5000, modelMs: 5000, toolMs: 0, otherMs: 0 });
    expect(callsOf(folded)).toMatchObject([{ outcome: "interrupted" }]);
    expect(callsOf(folded)[0]).not.toHaveProperty("durationMs");
  });

  test("the time between a crash and the resumption belongs to no agent: a call that had ended while another was cut off", () => {
    const calls = ["c", "d"].map((id) => ({ type: "tool_use", id, name: "Bash", input: {} }));
    const late = [
      { type: "tool_result", tool_use_id: "c", content: "done" },
      { type: "tool_result", tool_use_id: "d", content: "Interrupted: the session ended before …" },
    ];
    const folded = fold([
      prompt(0, "Go."),
      answer(2, "a", { durationMs: 2000 }, { content: calls, stop_reason: "tool_use" }),
      { type: "retinue-outcome", timestamp: at(3), id: "c", isError: false, content: "done" },
      line("user", day, { message: { role: "user", content: late } }),
    ]);
    expect(callsOf(folded)).toMatchObject([{ outcome: "ok", durationMs: 1000 }, { callId: "d" }]);
    expect(folded.totals.toolMs).toBeLessThanOrEqual(1000);
  });

  test("the time between a crash and the resumption belongs to no agent: a model that was being asked", () => {
    const { totals } = fold([
      prompt(0, "Go."),
      plan(0),
      answer(2, "a", { durationMs: 2000 }, calling("c", "Bash")),
      result(3, "c", { toolCall: { durationMs: 1000, startedAt: start + 2000 } }),
      prompt(day, "Continue."),
      plan(day),
      answer(day + 1, "b", { durationMs: 1000 }, saying("Done.")),
    ]);
    expect(totals).toMatchObject({ durationMs: 4000, modelMs: 3000, toolMs: 1000, otherMs: 0 });
  });

  test("the time between a crash and the resumption belongs to no agent: a child, which stays interrupted until it continues", () => {
    const mark = { isSidechain: true, agentId: "a1" };
    const lines = [
      plan(0, mark),
      prompt(0, "Go.", mark),
      answer(2, "a", { durationMs: 2000, ...mark }, calling("c", "Bash")),
      ending(day, { status: "stopped", reason: "interrupted" }),
    ];
    expect(fold(lines)).toMatchObject({
      state: "interrupted",
      lastSignAt: start + 2000,
      inFlight: [{ type: "call", tool: "Bash" }],
      totals: { durationMs: 2000, otherMs: 0 },
    });
    const continues = fold([
      ...lines,
      plan(2 * day, mark),
      prompt(2 * day, "Continue.", mark),
      answer(2 * day + 1, "b", { durationMs: 1000, ...mark }, saying("Done.")),
      ending(2 * day + 1),
    ]);
    expect(continues).toMatchObject({ state: "completed", totals: { durationMs: 3000, otherMs: 0 } });
  });

  test("numbers that are no counts do not count", () => {
    const { totals } = fold([
      answer(1, "a", { durationMs: 1e300, costUSD: 1e308 }, { usage: usage(1e308, -5, 1e308, 7) }),
    ]);
    expect(totals).toMatchObject({ usage: { inputTokens: 0, outputTokens: 0, cacheWriteTokens: 7 } });
    expect(JSON.stringify(totals)).not.toMatch(/null|e\+/);
  });

  test("where durations are not written, the lines before and after are used instead", () => {
    const { steps } = fold([
      prompt(0, "One."),
      answer(3, "a", {}, calling("c", "Bash")),
      result(8, "c"),
      answer(9, "b", {}, saying("Done.")),
    ]);
    expect(steps).toMatchObject([
      { type: "prompt" },
      { type: "turn", at: start, durationMs: 3000 },
      { type: "call", at: start + 3000, durationMs: 5000 },
      { type: "turn", at: start + 8000, durationMs: 1000 },
    ]);
  });
});

describe("[TSK-4] outcomes of calls", () => {
  const outcomeOf = (fields: object, block: object) =>
    callsOf(
      fold([answer(1, "a", {}, calling("c", "Bash", { command: "ls" })), result(2, "c", fields, block)]),
    )[0];

  test.each([
    ["a result", {}, {}, { outcome: "ok" }],
    [
      "an error",
      {},
      { is_error: true, content: "no such file" },
      { outcome: "failed", reason: "no such file" },
    ],
    [
      "a refusal with its reason",
      { toolCall: { durationMs: 0, decidedMs: 900, asked: true, denied: "the rule denies it" } },
      { is_error: true, content: "other words" },
      { outcome: "refused", reason: "the rule denies it", asked: true, decidedMs: 900 },
    ],
    [
      "a refusal in another program's words",
      { toolDenialKind: "user-rejected" },
      { is_error: true, content: "No." },
      { outcome: "refused", reason: "No." },
    ],
    [
      "a call another program cut off",
      { toolDenialKind: "cancelled" },
      { is_error: true },
      { outcome: "interrupted" },
    ],
    [
      "an older refusal of our own",
      {},
      { is_error: true, content: "Bash was not allowed: no allow rule matches." },
      { outcome: "refused" },
    ],
    [
      "a call that a crash cut off",
      {},
      { is_error: true, content: "Interrupted: the session ended before a result" },
      { outcome: "interrupted" },
    ],
  ])("%s", (_, fields, block, expected) => {
    expect(outcomeOf(fields, block)).toMatchObject({ tool: "Bash", about: "ls", ...expected });
  });

  test("refusals are listed with agent and reason, and retries are steps", () => {
    const inspection = inspect({
      main: [
        answer(1, "a", {}, calling("c", "Write", { file_path: "/etc/x" })),
        result(2, "c", { toolCall: { durationMs: 0, denied: "outside" } }, { is_error: true }),
        line("system", 3, {
          subtype: "api_error",
          error: { code: "overloaded", message: "busy" },
          retryInMs: 1500,
        }),
      ],
    });
    expect(inspection.refusals).toEqual([
      { agentId: "main", callId: "c", tool: "Write", about: "/etc/x", reason: "outside", at: start + 1000 },
    ]);
    expect(inspection.agents[0]?.steps.at(-1)).toMatchObject({
      type: "retry",
      code: "overloaded",
      waitMs: 1500,
    });
    expect(inspection.totals).toMatchObject({ refusedCalls: 1, retries: 1 });
  });
});

describe("[CLI-3] how an agent is doing", () => {
  const open = [prompt(0, "Go."), answer(1, "a", { costUSD: 0 }, calling("c", "Bash", { command: "make" }))];
  const done = [prompt(0, "Go."), answer(1, "a", {}, saying("Done."))];

  test.each([
    [
      "an ending is what it says",
      [...done, ending(2, { status: "partial", reason: "max_turns" })],
      false,
      "partial",
    ],
    [
      "a line after an ending takes it up again",
      [...done, ending(2), prompt(3, "More.")],
      false,
      "interrupted",
    ],
    ["one whose process lives runs", open, true, "running"],
    ["one without a process and an ending was interrupted", open, false, "interrupted"],
    ["of another program's, a complete answer is all there is", done, false, "answered"],
    [
      "our own without an ending was interrupted after its last answer",
      [...done, ...open],
      false,
      "interrupted",
    ],
    ["nothing at all is empty", [], false, "empty"],
  ] as const)("%s", (_, lines, isLive, state) => {
    expect(fold(lines, { isLive }).state).toBe(state);
  });

  test("what was in flight is reported: calls without a result, or the model", () => {
    const cut = fold(open);
    expect(cut.inFlight).toEqual([
      { type: "call", callId: "c", tool: "Bash", about: "make", since: start + 1000 },
    ]);
    expect(callsOf(cut)[0]?.outcome).toBe("interrupted");
    expect(callsOf(fold(open, { isLive: true }))[0]?.outcome).toBe("running");
    expect(fold([...open, result(4, "c")]).inFlight).toEqual([{ type: "model", since: start + 4000 }]);
    expect(fold([...open, result(4, "c"), ending(5)]).inFlight).toEqual([]);
  });

  test("a call whose outcome was written before the others ended is not in flight", () => {
    const two = answer(
      1,
      "z",
      { costUSD: 0 },
      {
        content: [...calling("c1", "Read").content, ...calling("c2", "Bash").content],
      },
    );
    const outcome = { type: "retinue-outcome", timestamp: at(3), id: "c1", isError: true, content: "gone" };
    const cut = fold([prompt(0, "Go."), two, outcome]);
    expect(cut.inFlight).toMatchObject([{ callId: "c2" }]);
    expect(callsOf(cut)).toMatchObject([
      { outcome: "failed", reason: "gone", durationMs: 2000 },
      { outcome: "interrupted" },
    ]);
    const known = fold([prompt(0, "Go."), two, outcome, result(4, "c1")]);
    expect(callsOf(known)[0]).toMatchObject({ outcome: "ok", durationMs: 2000 });
  });

  test("the time of a running agent and of its running call continues until now", () => {
    const { totals } = fold(open, { isLive: true, now: start + 60_000 });
    expect(totals).toMatchObject({ durationMs: 60_000, modelMs: 1000, toolMs: 59_000, otherMs: 0 });
  });
});

describe("[LIM-4] the tree of a session", () => {
  const family = {
    main: [answer(1, "a", { costUSD: 1 }, calling("call-1", "Agent", { description: "look" }))],
    child: [answer(2, "b", { costUSD: 2 }, calling("call-2", "Agent"))],
    grandchild: [answer(3, "c", { costUSD: 4 }, { model: "claude-haiku-4-5" })],
    other: [answer(1.5, "d", { costUSD: 8 })],
  };
  const known = {
    child: { toolUseId: "call-1", description: "look" },
    grandchild: { parentAgentId: "child" },
    other: { parentAgentId: "nobody" },
  };

  test("each agent is below the one that started it, in the order of their start", () => {
    const { agents } = inspect(family, { known });
    expect(agents.map(({ id, parentId, depth, tree }) => [id, parentId, depth, tree.costUsd])).toEqual([
      ["main", undefined, 0, 15],
      ["other", "main", 1, 8],
      ["child", "main", 1, 6],
      ["grandchild", "child", 2, 4],
    ]);
  });

  test("those that one answer started are in the order of its calls, whichever began first", () => {
    const both = { content: [...calling("c1", "Agent").content, ...calling("c2", "Agent").content] };
    const { agents } = inspect(
      {
        main: [prompt(0, "Go."), answer(1, "m", {}, both)],
        a1: [prompt(2, "Second.")],
        a2: [prompt(3, "First.")],
      },
      { known: { a1: { toolUseId: "c2" }, a2: { toolUseId: "c1" } } },
    );
    expect(agents.map(({ id }) => id)).toEqual(["main", "a2", "a1"]);
  });

  test("agents that name each other as parents are below the main agent", () => {
    const { agents } = inspect(
      { main: [], one: [], two: [] },
      { known: { one: { parentAgentId: "two" }, two: { parentAgentId: "one" } } },
    );
    expect(agents.map(({ id, parentId }) => [id, parentId])).toEqual([
      ["main", undefined],
      ["one", "main"],
      ["two", "main"],
    ]);
  });

  test("money is shared among models, and a tool that starts agents shows what they cost", () => {
    const { byModel, byTool, totals } = inspect(family, { known });
    expect(byModel.map(({ model, costUsd: cost, turns }) => [model, cost, turns])).toEqual([
      ["claude-opus-5", 11, 3],
      ["claude-haiku-4-5", 4, 1],
    ]);
    expect(byTool).toMatchObject([{ tool: "Agent", calls: 2, agentsCost: 6 }]);
    expect(totals.costUsd).toBe(15);
  });

  test("of one agent, only it and its children are shown and summed", () => {
    const { agents, totals, only } = inspect(family, { known }, "child");
    expect(agents.map(({ id }) => id)).toEqual(["child", "grandchild"]);
    expect({ costUsd: totals.costUsd, only }).toEqual({ costUsd: 6, only: "child" });
  });

  test("endings that report more than the lines are noted", () => {
    const lines = [answer(1, "a", { costUSD: 1 })];
    const more = ending(2, { usage: { inputTokens: 500 }, toolUses: 2, costUSD: 3 });
    expect(inspect({ main: [...lines, more] }).notes).toEqual([
      "main: its endings report 485 more tokens, $2.000000 more, 2 more tool calls than its lines; some lines are missing.",
    ]);
    const same = ending(2, { usage: { inputTokens: 10, outputTokens: 5 }, costUSD: 1 });
    expect(inspect({ main: [...lines, same] }).notes).toEqual([]);
  });
});

describe("any lines will do", () => {
  const whole: readonly JsonRecord[] = [
    prompt(0, "Go."),
    answer(1, "a", { costUSD: 0.1, durationMs: 900 }, calling("c", "Bash", { command: "ls" })),
    result(2, "c", { toolCall: { startedAt: start, durationMs: 5 }, toolUseResult: { agentId: "x" } }),
    answer(3, "b", { costUSD: 0.2 }, saying("Done.")),
    ending(4, { usage: { inputTokens: 20, outputTokens: 10 }, costUSD: 0.3 }),
  ];
  const check = (lines: readonly JsonRecord[]): void => {
    const inspection = inspect({ main: lines, child: lines });
    expect(JSON.parse(JSON.stringify(inspection))).toEqual(inspection);
    const { usage: expected, answers, toolUses } = sumTranscriptUsage(lines);
    expect(inspection.agents[0]?.totals).toMatchObject({ usage: expected, turns: answers, toolUses });
  };

  test("an object without a text in the place of an id", () => {
    const uuid = JSON.parse('{"toString": 0}') as JsonRecord;
    const { id: _id, ...message } = (whole[3] as { message: JsonRecord }).message;
    check([whole[0] ?? {}, { ...whole[3], uuid, message }]);
  });

  test("random objects", () => {
    const record = fc.record(
      {
        type: fc.constantFrom("user", "assistant", "system", "other"),
        subtype: fc.constantFrom("compact_boundary", "api_error", "turn_duration"),
        message: fc.jsonValue(),
        compactMetadata: fc.jsonValue(),
        error: fc.jsonValue(),
        runEnding: fc.jsonValue(),
        uuid: fc.jsonValue(),
        timestamp: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(record), (lines) => {
        expect(() => JSON.stringify(inspect({ main: lines }))).not.toThrow();
      }),
    );
  });

  test("real lines with parts replaced, repeated, left out and put in any order", () => {
    const paths = [
      "timestamp",
      "message",
      "uuid",
      "toolCall",
      "toolUseResult",
      "costUSD",
      "durationMs",
      "isMeta",
    ];
    const mutation = fc.record({
      at: fc.nat(whole.length - 1),
      key: fc.constantFrom(...paths),
      value: fc.jsonValue(),
    });
    fc.assert(
      fc.property(fc.array(mutation), fc.shuffledSubarray([...whole]), (mutations, lines) => {
        const changed = lines.map((one, index) =>
          Object.assign(
            { ...one },
            ...mutations
              .filter((mutation) => mutation.at === index)
              .map(({ key, value }) => ({ [key]: value })),
          ),
        );
        const inspection = inspect({ main: changed });
        expect(JSON.parse(JSON.stringify(inspection))).toEqual(inspection);
      }),
    );
  });

  test("left out and put in any order, the sums are those the journal has", () => {
    fc.assert(fc.property(fc.shuffledSubarray([...whole]), check));
  });
});

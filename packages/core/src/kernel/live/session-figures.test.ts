import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { expect, onTestFinished, test } from "vitest";
import type { Inspection } from "../../inspection/inspection.ts";
import { createInspectionSource } from "../../inspection/inspection-source.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { sessionFigures } from "./session-figures.ts";
import { overviewOf } from "./session-overview.ts";

const sessionId = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const start = Date.UTC(2026, 9, 1, 10);
const stamp = (second: number): string => new Date(start + second * 1000).toISOString();

function user(second: number, content: unknown, more: object = {}): object {
  return {
    type: "user",
    uuid: `u${second}`,
    timestamp: stamp(second),
    message: { role: "user", content },
    ...more,
  };
}

function answer(second: number, content: readonly object[], costUSD: number): object {
  const usage = { input_tokens: 100, cache_read_input_tokens: 300, output_tokens: 10 };
  const message = { id: `m${second}`, model: "m", content, usage };
  return {
    type: "assistant",
    uuid: `a${second}`,
    timestamp: stamp(second),
    costUSD,
    durationMs: 500,
    message,
  };
}

const call = (id: string, name: string): object => ({
  type: "tool_use",
  id,
  name,
  input: { command: "make" },
});
const result = (second: number, id: string, toolCall: object): object =>
  user(second, [{ type: "tool_result", tool_use_id: id, content: "ok" }], { toolCall });

async function inspected(
  main: readonly object[],
  child: readonly object[] = [],
  { asked }: { readonly asked?: readonly { readonly id: string; readonly since: number }[] } = {},
): Promise<Inspection> {
  const transcripts = mkdtempSync(join(tmpdir(), "retinue-figures-"));
  onTestFinished(() => rmSync(transcripts, { recursive: true, force: true }));
  const files = sessionFiles(transcripts, sessionId);
  const text = (lines: readonly object[]): string =>
    lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  writeFileSync(files.transcript, text(main));
  if (child.length > 0) {
    mkdirSync(files.subagents, { recursive: true });
    writeFileSync(
      files.agent("achild").meta,
      JSON.stringify({ agentType: "Explore", description: "Look around" }),
    );
    writeFileSync(files.agent("achild").transcript, text(child));
  }
  if (asked !== undefined) {
    mkdirSync(files.directory, { recursive: true });
    writeFileSync(join(files.directory, "asked-calls.json"), JSON.stringify({ calls: asked }));
    const taken = takeOwnerLock(files.transcript);
    onTestFinished(() => {
      if (taken.type === "taken") taken.lock.release();
    });
  }
  return createInspectionSource({ transcripts, sessionId, now: () => start + 3_600_000 }).load();
}

const main = [
  user(0, "Build it.", { gitBranch: "oak" }),
  answer(2, [call("t1", "Bash"), call("t2", "Read")], 0.5),
  result(10, "t1", { durationMs: 1000, decidedMs: 6000, asked: true }),
  result(11, "t2", { durationMs: 10 }),
  answer(12, [{ type: "text", text: "Built.\nAll of it." }], 0.25),
];

test("the cost of a turn is divided by its calls, and the rest is of no call [STU-1]", async () => {
  expect(overviewOf(await inspected(main)).costByTool).toEqual([
    { tool: "Bash", costUsd: 0.25 },
    { tool: "Read", costUsd: 0.25 },
    { costUsd: 0.25 },
  ]);
});

test("waiting for a person is a bar of its own, as long as the question took [STU-1]", async () => {
  const bars = overviewOf(await inspected(main)).agents[0]?.bars ?? [];
  expect(bars.filter(({ kind }) => kind === "waiting")).toEqual([
    { kind: "waiting", from: start + 2000, to: start + 8000 },
  ]);
});

test("the list has calls, time, branch, the outcome, and the sums since midnight [STU-1]", async () => {
  const child = [user(3, "Look."), answer(4, [{ type: "text", text: "Seen." }], 0.25)];
  const inspection = await inspected(main, child);
  expect(sessionFigures(inspection, start)).toMatchObject({
    calls: 2,
    branch: "oak",
    now: "Built. All of it.",
    agents: 2,
    startedAt: start,
    today: { cost: 1, tokensIn: 1200, cached: 900, tokensOut: 30, agents: 2, failed: 0 },
  });
  expect(sessionFigures(inspection, start).words).toContain("Explore Look around");
  // Of a day that begins after the first turn, only what came later counts.
  expect(sessionFigures(inspection, start + 5000).today).toMatchObject({ cost: 0.25, agents: 1 });
  expect(sessionFigures(inspection, start + 60_000).today).toMatchObject({ cost: 0, agents: 0 });
});

test("a call that a terminal asks its person about is shown first, counted, and a bar of waiting up to now [STU-1]", async () => {
  const open = main.slice(0, 2);
  const since = start + 3000;
  const inspection = await inspected(open, [], {
    asked: [
      { id: "t1", since },
      { id: "gone", since },
    ],
  });
  expect(inspection.agents[0]?.inFlight).toMatchObject([
    { callId: "t1", askedSince: since },
    { callId: "t2" },
  ]);
  const figures = sessionFigures(inspection, start);
  expect([figures.asked, figures.now]).toEqual([1, "asks Bash make"]);
  const bars = overviewOf(inspection).agents[0]?.bars ?? [];
  expect(bars.map(({ kind }) => kind)).toContain("waiting");
  // What a process has left behind that is gone says nothing.
  const ended = await inspected(open);
  expect(sessionFigures(ended, start).asked).toBe(0);
});

test("a call that failed has taken its time like any other, and is marked at its end; the small timeline shows who waits [STU-1]", async () => {
  const inspection = await inspected(main);
  const steps = inspection.agents[0]?.steps ?? [];
  const failed = steps.map((step) =>
    step.type === "call" && step.tool === "Bash" ? { ...step, outcome: "failed" as const } : step,
  );
  const agents = inspection.agents.map((agent) => ({ ...agent, steps: failed }));
  const bars = overviewOf({ ...inspection, agents }).agents[0]?.bars ?? [];
  expect(bars.filter(({ kind }) => kind === "failed")).toEqual([
    { kind: "failed", from: start + 9000, to: start + 9000 },
  ]);
  expect(bars.filter(({ kind }) => kind === "tool")).toContainEqual({
    kind: "tool",
    from: start + 8000,
    to: start + 9000,
  });

  const live = { ...inspection, session: { ...inspection.session, isLive: true } };
  const asked = { at: start + 3000, places: [{ agent: sessionId }] };
  expect(sessionFigures(live, start, [asked])).toMatchObject({ questions: 1 });
  const waits = (questions: readonly (typeof asked)[]): number =>
    (sessionFigures(live, start, questions).lanes?.[0] ?? [])
      .filter(({ kind }) => kind === "waiting")
      .reduce((sum, { from, to }) => sum + to - from, 0);
  expect(waits([asked])).toBeGreaterThan(waits([]));
});

test("the parts of a context window are what the provider counted, and add up to all of it [STU-1]", async () => {
  const inspection = await inspected(main);
  const context = overviewOf(inspection).agents[0]?.context;
  const { start: first = 0, answers = 0, results = 0 } = context?.parts ?? {};
  expect(first).toBe(400);
  expect(answers).toBeGreaterThan(0);
  expect(first + answers + results).toBe(context?.tokens);
});

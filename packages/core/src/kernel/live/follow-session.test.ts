import { randomUUID } from "node:crypto";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { expect, onTestFinished, test } from "vitest";
import { createConversationSource } from "./follow-session.ts";

const sessionId = "11111111-1111-4111-8111-111111111111";

/** Answers that each call a tool, and the results. */
function writeTurns(file: string, from: number, count: number): void {
  const lines = Array.from({ length: count }, (_, at) => {
    const id = `toolu_${from + at}`;
    const common = { parentUuid: null, sessionId, timestamp: "2026-01-01T00:00:00.000Z" };
    const call = { type: "tool_use", id, name: "Read", input: { file_path: `/x/${from + at}` } };
    const result = { type: "tool_result", tool_use_id: id, content: "a line of a file\n".repeat(70) };
    const answer = { id: `msg_${from + at}`, role: "assistant", content: [call] };
    return [
      { ...common, type: "assistant", uuid: randomUUID(), message: answer },
      { ...common, type: "user", uuid: randomUUID(), message: { role: "user", content: [result] } },
    ];
  });
  appendFileSync(
    file,
    lines
      .flat()
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(""),
  );
}

test("a session of 60,000 events is followed in bounded memory, and each entry is sent with its result [STU-1]", {
  timeout: 120_000,
}, async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  const transcripts = mkdtempSync(join(tmpdir(), "long-session-"));
  onTestFinished(() => rmSync(transcripts, { recursive: true, force: true }));
  const file = join(transcripts, `${sessionId}.jsonl`);
  const place = { transcripts, sessionId, agentId: "main" };
  writeTurns(file, 0, 1000);
  const source = createConversationSource(place);
  const first = await source.load({ all: false });
  expect(first).toMatchObject({ from: 1600, count: 2000 });
  expect(first.entries.map(([index]) => index)).toEqual(Array.from({ length: 400 }, (_, at) => 1600 + at));
  let early = 0;
  for (let at = 1000; at < 30_000; at += 500) {
    writeTurns(file, at, 500);
    const { entries } = await source.load({ all: false });
    expect(entries).toHaveLength(1000);
    expect(
      entries.every(
        ([, entry]) => entry.type === "turn" || (entry.type === "call" && entry.result !== undefined),
      ),
    ).toBe(true);
    if (at === 4000) early = heap();
  }
  // Some bytes for each line are left, by which a line that comes twice is known.
  expect(heap() - early).toBeLessThan(20);
  // One that begins now sees the same end, and all of it where it asks.
  const late = await createConversationSource(place).load({ all: false });
  expect(late).toMatchObject({ from: 59_600, count: 60_000 });
  expect(late.entries).toHaveLength(400);
  expect((await createConversationSource(place).load({ all: true })).entries).toHaveLength(60_000);
});

test("rules of a plan are sent as settings have them, and what is no rule as it was written down [STU-1]", async () => {
  const transcripts = mkdtempSync(join(tmpdir(), "rules-of-plan-"));
  onTestFinished(() => rmSync(transcripts, { recursive: true, force: true }));
  const read = parseRule("Bash(npm test *)");
  if (read.type !== "rule") throw new Error(read.reason);
  const policy = {
    mode: "default",
    allow: [{ rule: read.rule, from: "user" }, { rule: { tool: 3 } }, "odd"],
  };
  const record = { type: "retinue-plan", timestamp: "2026-01-01T00:00:00.000Z", plan: { policy } };
  appendFileSync(join(transcripts, `${sessionId}.jsonl`), `${JSON.stringify(record)}\n`);
  const update = await createConversationSource({ transcripts, sessionId, agentId: "main" }).load({
    all: false,
  });
  expect(update.plan).toEqual({
    policy: {
      mode: "default",
      allow: [{ rule: "Bash(npm test *)", from: "user" }, { rule: { tool: 3 } }, "odd"],
    },
  });
});

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeRecovery } from "./settle-child.ts";

const sessionId = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const mark = { sessionId, agentId: "a1", isSidechain: true };
const plan = { type: "retinue-plan", plan: { task: { agentType: "Explore", description: "look" } } };
const reported = (event: string) => ({ type: "retinue-told", event });
const said = (uuid: string, content: string) => ({ type: "user", uuid, message: { role: "user", content } });
const answered = (uuid: string, text: string) => ({
  type: "assistant",
  uuid,
  costUSD: 0.5,
  message: {
    id: uuid,
    role: "assistant",
    content: [{ type: "text", text }],
    usage: { input_tokens: 10, output_tokens: 3 },
  },
});
const ended = { type: "system", uuid: "e1", runEnding: { status: "completed", reason: "end_turn" } };

function writeLines(lines: readonly object[]): string {
  const folder = mkdtempSync(join(tmpdir(), "retinue-settled-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "agent-a1.jsonl");
  const text = lines.map((line, at) => {
    const timestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString();
    return `${JSON.stringify({ ...mark, timestamp, ...line })}\n`;
  });
  writeFileSync(file, text.join(""));
  return file;
}

const linesOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

function settle(file: string, reportStop?: (text: string) => Promise<void>) {
  return writeRecovery({
    file,
    ids: { uuid: () => crypto.randomUUID() },
    now: () => Date.UTC(2026, 0, 2),
    facts: { sessionId, agentId: "a1", cwd: "/", version: "1", entrypoint: "cli" },
    reportStop,
  });
}

const first = [
  plan,
  reported("SubagentStart"),
  said("u1", "Go."),
  answered("m1", "One."),
  reported("SubagentStop"),
  ended,
];
const second = [plan, reported("SubagentStart"), said("u2", "Continue."), answered("m2", "Two.")];

test("[LIM-4] the ending of a run that was cut off counts what that run took, and no run before it", async () => {
  const file = writeLines([...first, ...second]);
  expect(await settle(file)).toBe("settled");
  expect(linesOf(file).at(-1)).toMatchObject({
    durationMs: 3000,
    runEnding: {
      status: "stopped",
      reason: "interrupted",
      turns: 1,
      usage: { inputTokens: 10, outputTokens: 3 },
      costUSD: 0.5,
    },
  });
});

test("[HKS-8] that hooks are notified of the stop is on disk before they are, so that a second crash does not repeat it", async () => {
  const file = writeLines(second);
  const received: unknown[] = [];
  await settle(file, async (text) => void received.push(text, linesOf(file).at(-1)));
  expect(received).toMatchObject(["Two.", { type: "retinue-told", event: "SubagentStop" }]);
  const before = readFileSync(file, "utf8");
  expect(await settle(file, async () => void received.push("again"))).toBe("left");
  expect(received).toHaveLength(2);
  expect(readFileSync(file, "utf8")).toBe(before);
});

test("[TRN-4] what ended well, and what another program wrote, is left as it is", async () => {
  for (const lines of [first, [said("u1", "Go."), answered("m1", "Half.")]]) {
    const file = writeLines(lines);
    const before = readFileSync(file, "utf8");
    expect(await settle(file, () => Promise.reject(new Error("No one is to be reported.")))).toBe("left");
    expect(readFileSync(file, "utf8")).toBe(before);
  }
});

test("[TRN-4] what the process that died had beside the transcript goes, what belongs to others stays", async () => {
  const file = writeLines(second);
  const folder = dirname(file);
  for (const name of [
    "agent-a1.queued",
    "agent-a1.meta.json.0f.tmp",
    "agent-a1.meta.json",
    "agent-a2.queued",
  ])
    writeFileSync(join(folder, name), "1");
  await settle(file);
  expect(readdirSync(folder).sort()).toEqual(["agent-a1.jsonl", "agent-a1.meta.json", "agent-a2.queued"]);
});

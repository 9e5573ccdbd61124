import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openAppendLog } from "@retinue/base/storage/append-log.ts";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { AssistantMessage, ToolResultBlock, UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { loadSession } from "./session-choices.ts";
import type { TranscriptFacts } from "./transcript-facts.ts";
import { createTranscriptWriter } from "./transcript-writer.ts";

const facts: TranscriptFacts = {
  sessionId: "s",
  cwd: "/w",
  version: "1",
  entrypoint: "cli",
  permissionMode: "default",
};

function start(options: { leaf?: string; facts?: TranscriptFacts } = {}) {
  const lines: Record<string, unknown>[] = [];
  let isFull = false;
  let count = 0;
  const writer = createTranscriptWriter({
    log: {
      append: (added) => {
        if (isFull) throw new Error("full");
        lines.push(...added.map((line) => JSON.parse(line)));
        return added.length;
      },
    },
    ids: {
      uuid: () => {
        count += 1;
        return `u${count}`;
      },
    },
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    facts: options.facts ?? facts,
    leaf: options.leaf,
  });
  const fill = (full: boolean) => {
    isFull = full;
  };
  return { lines, writer, fill };
}

const compacted = (
  changes: Partial<Extract<RunEvent, { type: "context-compacted" }>> = {},
): Extract<RunEvent, { type: "context-compacted" }> => ({
  type: "context-compacted",
  trigger: "auto",
  preTokens: 9,
  postTokens: 3,
  by: "model",
  summary: { role: "user", content: "So far" },
  kept: 0,
  keptAnswers: 0,
  model: "m",
  durationMs: 1,
  usage: noUsage,
  costUsd: 0.5,
  ...changes,
});

const added = (
  content: UserMessage["content"],
  origin: Extract<RunEvent, { type: "user-added" }>["origin"] = "prompt",
  results?: Readonly<Record<string, unknown>>,
): RunEvent => ({
  type: "user-added",
  message: { role: "user", content },
  origin,
  results,
});
const answered = (content: AssistantMessage["content"], id = "msg_1"): RunEvent => ({
  type: "assistant-answered",
  id,
  model: "m",
  message: { role: "assistant", content },
  stopReason: "tool_use",
  usage: { ...noUsage, inputTokens: 7 },
  costUsd: 0.1,
  requestId: "req_1",
});
const use = (id: string) => ({ type: "tool_use", id, name: "Read", input: {} }) as const;
const result = (id: string): ToolResultBlock => ({ type: "tool_result", tool_use_id: id, content: "ok" });

describe("[TRN-1] events become lines", () => {
  it("each line hangs on the one before it", () => {
    const { lines, writer } = start();
    writer.record(added("Hi"));
    writer.record(answered([{ type: "text", text: "Yes" }, use("a")]));
    writer.record(added([result("a")], "tool-results"));
    expect(lines.map(({ uuid, parentUuid }) => [parentUuid, uuid])).toEqual([
      [null, "u1"],
      ["u1", "u2"],
      ["u2", "u3"],
      ["u3", "u4"],
    ]);
    expect(writer.leaf).toBe("u4");
    expect(lines[0]).toMatchObject({ timestamp: "2026-01-02T03:04:05.006Z", origin: { kind: "human" } });
  });

  it("[LIM-4] an answer is one line per block with the same id, request and usage, the reason on the last", () => {
    const { lines, writer } = start();
    writer.record(answered([{ type: "text", text: "Yes" }, use("a")]));
    expect(lines).toMatchObject([
      {
        requestId: "req_1",
        costUSD: 0.1,
        message: { id: "msg_1", content: [{ type: "text" }], stop_reason: null, usage: { input_tokens: 7 } },
      },
      {
        requestId: "req_1",
        costUSD: 0.1,
        message: { id: "msg_1", content: [use("a")], stop_reason: "tool_use", usage: { input_tokens: 7 } },
      },
    ]);
  });

  it("[LIM-4] an answer without content keeps its usage", () => {
    const { lines, writer } = start();
    writer.record(answered([]));
    expect(lines).toMatchObject([{ message: { content: [], usage: { input_tokens: 7 } } }]);
  });

  it("each result has its own line with its data and the line of its call; errors are kept as text", () => {
    const { lines, writer } = start();
    writer.record(answered([use("a"), use("__proto__")]));
    const failed: ToolResultBlock = { ...result("__proto__"), content: "Broken", is_error: true };
    writer.record(
      added([result("a"), failed, { type: "text", text: "Also" }], "tool-results", { a: { file: "x" } }),
    );
    expect(lines.slice(2)).toMatchObject([
      { message: { content: [result("a")] }, toolUseResult: { file: "x" }, sourceToolAssistantUUID: "u1" },
      { message: { content: [failed] }, toolUseResult: "Broken", sourceToolAssistantUUID: "u2" },
      { message: { content: [{ type: "text", text: "Also" }] } },
    ]);
  });

  it("what was not typed is marked, and only a person's prompt has a person as its origin", () => {
    const { lines, writer } = start();
    writer.record(added("Reminder", "system"));
    writer.record(added("From afar", "message"));
    expect(lines[0]).toMatchObject({ isMeta: true });
    expect(lines[1]).not.toHaveProperty("origin");
    const child = start({ facts: { ...facts, agentId: "a1" } });
    child.writer.record(added("Task"));
    expect(child.lines[0]).not.toHaveProperty("origin");
    expect(child.lines[0]).toMatchObject({ isSidechain: true, agentId: "a1" });
  });

  it("a compaction begins a new chain with the summary", () => {
    const { lines, writer } = start({ leaf: "old" });
    writer.record(compacted({ keptAnswers: 0 }));
    writer.record(added("Continue"));
    expect(lines).toMatchObject([
      { subtype: "compact_boundary", parentUuid: null, logicalParentUuid: "old" },
      { parentUuid: "u1", isCompactSummary: true },
      { parentUuid: "u2" },
    ]);
  });

  it("[CMP-2] a boundary says why, how much there was, what the summary took, and which lines stay", () => {
    const { lines, writer } = start();
    writer.record(added("Task"));
    writer.record(answered([{ type: "text", text: "One" }], "m1"));
    writer.record(added("More"));
    writer.record(
      answered(
        [
          { type: "text", text: "Two" },
          { type: "text", text: "Three" },
        ],
        "m2",
      ),
    );
    writer.record(added("Last"));
    writer.record(compacted({ kept: 2, keptAnswers: 1 }));
    const kept = ["u4", "u5", "u6"];
    expect(lines[6]).toMatchObject({
      type: "system",
      subtype: "compact_boundary",
      compactMetadata: {
        trigger: "auto",
        preTokens: 9,
        postTokens: 3,
        preservedMessages: { anchorUuid: "u8", uuids: kept },
        summarizer: { by: "model", model: "m", usage: { input_tokens: 0 }, costUSD: 0.5 },
      },
    });
    writer.record(answered([{ type: "text", text: "Four" }], "m3"));
    writer.record(compacted({ kept: 3, keptAnswers: 2 }));
    expect(lines[9]).toMatchObject({
      compactMetadata: { preservedMessages: { anchorUuid: "u11", uuids: [...kept, "u9"] } },
    });
  });

  it("[TRN-2] a boundary and its summary are written together or not at all", () => {
    const { lines, writer, fill } = start();
    writer.record(added("Task"));
    fill(true);
    expect(() => writer.record(compacted())).toThrow("full");
    expect(writer.leaf).toBe("u1");
    fill(false);
    writer.record(added("Continue"));
    expect(lines).toHaveLength(2);
  });

  it("[LIM-4] the end of a run says what it took", () => {
    const { lines, writer } = start();
    const totals = { usage: noUsage, turns: 2, toolUses: 1, durationMs: 30, modelMs: 20, costUsd: 0.5 };
    writer.record({
      type: "run-ended",
      ending: { status: "completed", reason: "end_turn", text: "", totals, denials: [] },
    });
    expect(lines[0]).toMatchObject({
      type: "system",
      subtype: "turn_duration",
      durationMs: 30,
      runEnding: { status: "completed", turns: 2, toolUses: 1, costUSD: 0.5 },
    });
  });

  it("titles and tags are no part of the chain, and passing events leave no line", () => {
    const { lines, writer } = start({ leaf: "old" });
    writer.rename("A title");
    writer.tag("wip");
    writer.record({ type: "turn-started", turn: 1 });
    writer.record({ type: "call-progressed", callId: "a", text: "x" });
    expect(lines.map(({ type }) => type)).toEqual(["custom-title", "tag"]);
    expect(writer.leaf).toBe("old");
  });
});

it("[TRN-2] lines that could not be written are no part of the chain", () => {
  const { lines, writer, fill } = start();
  writer.record(added("Hi"));
  fill(true);
  expect(() => writer.record(added("Lost"))).toThrow("full");
  fill(false);
  writer.record(added("Again"));
  expect(lines.map(({ parentUuid }) => parentUuid)).toEqual([null, "u1"]);
});

describe("on a real file", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "writer-"));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const script = (file: string) => `
    const { openAppendLog } = await import(${JSON.stringify(new URL("../../../base/src/storage/append-log.ts", import.meta.url).href)});
    const { createTranscriptWriter } = await import(${JSON.stringify(new URL("./transcript-writer.ts", import.meta.url).href)});
    const writer = createTranscriptWriter({
      log: openAppendLog(${JSON.stringify(file)}),
      ids: { uuid: () => crypto.randomUUID() },
      now: Date.now,
      facts: ${JSON.stringify(facts)},
    });
    const user = (content) => writer.record({ type: "user-added", message: { role: "user", content }, origin: "prompt" });
    user("Begin");
    for (let turn = 1; turn <= 300; turn += 1) {
      const calls = [1, 2].map((n) => ({ type: "tool_use", id: "call_" + turn + "_" + n, name: "Read", input: { pad: "x".repeat(20_000) } }));
      writer.record({ type: "assistant-answered", id: "msg_" + turn, model: "m", stopReason: "tool_use",
        message: { role: "assistant", content: [{ type: "text", text: "Turn " + turn }, ...calls] },
        usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 } });
      process.stdout.write(turn + "\\n");
      user(calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "y".repeat(20_000) })));
    }
    setInterval(() => undefined, 1000);`;

  it("[TRN-2] [TRN-3] after kill -9 at any moment the file loads, nothing that was reported is missing, and it continues", async () => {
    for (const count of [1, 2, 3, 5, 8, 13]) {
      const file = join(root, `${count}.jsonl`);
      const child = spawn(process.execPath, ["--input-type=module", "-e", script(file)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      let said = "";
      while (said.split("\n").length <= count) said += String((await once(child.stdout, "data"))[0]);
      child.kill("SIGKILL");
      await once(child, "exit");
      const reported = Number(said.trim().split("\n").at(-1));

      const loaded = await loadSession(file);
      const turns = loaded.messages.filter(({ role }) => role === "assistant").length;
      expect(turns).toBeGreaterThanOrEqual(reported);
      expect(loaded.damage).toMatchObject({ broken: 0, missing: 0 });

      using log = openAppendLog(file, { expectLength: loaded.length });
      const writer = createTranscriptWriter({
        log,
        ids: { uuid: () => crypto.randomUUID() },
        now: () => 0,
        facts,
        leaf: loaded.leaf,
      });
      writer.record(added([...loaded.unrecorded, { type: "text", text: "Continue" }]));
      const resumed = await loadSession(file);
      expect(resumed.unrecorded).toEqual([]);
      expect(resumed.messages.length).toBeGreaterThanOrEqual(loaded.messages.length);
      expect(JSON.stringify(resumed.messages.at(-1))).toContain("Continue");
    }
  });
});

describe("what is vital is on the disk before anything has an effect [TRN-2]", () => {
  function startOnDisk() {
    const syncs: number[] = [];
    let length = 0;
    const writer = createTranscriptWriter({
      log: {
        append: (added) => {
          length += added.length;
          return length;
        },
        sync: async (wanted) => void syncs.push(wanted),
      },
      ids: { uuid: () => "u" },
      now: () => 0,
      facts,
    });
    return { writer, syncs, length: () => length };
  }

  const answer = (repeats: "pure" | "unsafe"): RunEvent => ({
    type: "assistant-answered",
    id: "m",
    model: "x",
    message: { role: "assistant", content: [{ type: "tool_use", id: "c", name: "Bash", input: {} }] },
    stopReason: "tool_use",
    usage: noUsage,
    durationMs: 1,
    intents: [{ callId: "c", tool: "Bash", repeats }],
  });

  it("an answer with a call that does something is synced up to its intents", () => {
    const { writer, syncs, length } = startOnDisk();
    writer.record(answer("unsafe"));
    expect(syncs).toEqual([length()]);
  });

  it("an answer that only looks is not synced by itself", () => {
    const { writer, syncs } = startOnDisk();
    writer.record(answer("pure"));
    expect(syncs).toEqual([]);
  });

  it("results of single calls are not waited for", async () => {
    const { writer, syncs, length } = startOnDisk();
    writer.record(answer("unsafe"));
    const intents = length();
    const call = { type: "tool_use", id: "c", name: "Bash", input: {} } as const;
    writer.record({
      type: "call-finished",
      call,
      isError: false,
      content: "done",
      durationMs: 1,
      decidedMs: 0,
    });
    await writer.commit();
    expect(syncs.at(-1)).toBe(intents);
  });

  it("the mark that hooks are about to be notified of a child is on the disk when they are", async () => {
    const { writer, syncs, length } = startOnDisk();
    await writer.reported("SubagentStart");
    expect(syncs).toEqual([length()]);
  });
});

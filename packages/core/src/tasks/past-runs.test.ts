import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPastRuns } from "./past-runs.ts";

const sessionId = (number: number): string => `0a1b2c3d-0000-4000-8000-${String(number).padStart(12, "0")}`;

/** A folder of transcripts with one more beside it. */
function createFolders() {
  const root = mkdtempSync(join(tmpdir(), "past-runs-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const put = (folder: string, session: number, id: string, more: Ended = {}): string => {
    const { type = "worker", status = "completed", outputTokens = 100, minutesAgo = 0, lines = [] } = more;
    const place = join(root, folder, sessionId(session), "subagents");
    mkdirSync(place, { recursive: true });
    const file = join(place, `agent-${id}.jsonl`);
    writeFileSync(join(place, `agent-${id}.meta.json`), JSON.stringify({ agentType: type }));
    const usage = { inputTokens: 1, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const ending = {
      subtype: "turn_duration",
      durationMs: 5,
      runEnding: { status, usage, costUSD: 0.5, ...more.ending },
    };
    writeFileSync(file, [...lines, JSON.stringify(ending)].map((line) => `${line}\n`).join(""));
    const at = new Date(Date.now() - minutesAgo * 60_000);
    utimesSync(place, at, at);
    return file;
  };
  return { put, runs: createPastRuns(join(root, "here")) };
}

interface Ended {
  readonly type?: string;
  readonly status?: string;
  readonly outputTokens?: number;
  readonly minutesAgo?: number;
  readonly lines?: readonly string[];
  readonly ending?: object;
}

const tokensOf = (found: readonly { readonly usage: { readonly outputTokens: number } }[]) =>
  found.map(({ usage }) => usage.outputTokens);

describe("recorded runs of an agent type [BIL-1]", () => {
  test("are those that did their work, the newest sessions first, and no more than 40", async () => {
    const { put, runs } = createFolders();
    for (let number = 1; number <= 50; number += 1)
      put("here", number, "a1", { outputTokens: number, minutesAgo: 60 - number });
    put("here", 51, "a1", { status: "failed", outputTokens: 1000 });
    put("here", 51, "a2", { status: "stopped", outputTokens: 1001 });
    put("here", 51, "a3", { type: "other", outputTokens: 1002 });
    put("here", 51, "a4", { status: "partial", outputTokens: 1003 });
    const found = await runs.of("worker");
    expect(tokensOf(found)).toEqual([1003, ...Array.from({ length: 39 }, (_, at) => 50 - at)]);
  });

  test("of one session are the newest of it, also behind a long receipt", async () => {
    const { put, runs } = createFolders();
    const output = "\u001b".repeat(20_000);
    for (let number = 1; number <= 45; number += 1) {
      const file = put("here", 1, `a${number}`, { outputTokens: number, ending: { receipt: { output } } });
      // Ids do not show when they ran.
      const at = new Date(Date.now() - ((number * 7) % 45) * 60_000);
      utimesSync(file, at, at);
    }
    const newest = Array.from({ length: 45 }, (_, at) => at + 1)
      .sort((a, b) => ((a * 7) % 45) - ((b * 7) % 45))
      .slice(0, 40);
    expect(tokensOf(await runs.of("worker"))).toEqual(newest);
  });

  test.each([
    { usage: { outputTokens: 1e308 } },
    { usage: { outputTokens: -1 } },
    { usage: { outputTokens: "5" } },
    { costUSD: -4 },
    { costUSD: 1e308 },
  ])("are none where they say what no run takes: %j", async (ending) => {
    const { put, runs } = createFolders();
    put("here", 1, "a1", { outputTokens: 7 });
    put("here", 1, "a2", { ending });
    expect(tokensOf(await runs.of("worker"))).toEqual([7]);
  });

  test("of other folders count only where the definition is the same there", async () => {
    const { put, runs } = createFolders();
    put("here", 1, "a1", { outputTokens: 1 });
    put("there", 2, "a1", { outputTokens: 2 });
    expect(tokensOf(await runs.of("worker"))).toEqual([1]);
    expect(tokensOf(await runs.of("worker", { everywhere: true }))).toEqual([1, 2]);
  });

  test("have the model, the price and what was quoted", async () => {
    const { put, runs } = createFolders();
    const band = { low: 1, likely: 2, high: 3 };
    const quote = { costUsd: band, tokens: band, durationMs: band, basis: { from: "history", runs: 4 } };
    put("here", 1, "a1", { ending: { receipt: { model: "m" }, quote } });
    expect(await runs.of("worker")).toMatchObject([
      { model: "m", costUsd: 0.5, durationMs: 5, quoted: quote },
    ]);
  });

  test("are read again when a file has changed, and are none where files are broken or missing", async () => {
    const { put, runs } = createFolders();
    expect(await runs.of("worker")).toEqual([]);
    const file = put("here", 1, "a1", { outputTokens: 1 });
    put("here", 2, "a1", {
      outputTokens: 2,
      minutesAgo: 5,
      lines: ["{ no JSON", "null", "x".repeat(100_000)],
    });
    expect(tokensOf(await runs.of("worker"))).toEqual([1, 2]);
    put("here", 1, "a1", { outputTokens: 333 });
    expect(tokensOf(await runs.of("worker"))).toEqual([333, 2]);
    writeFileSync(file, "broken");
    expect(tokensOf(await runs.of("worker"))).toEqual([2]);
    rmSync(file);
    expect(tokensOf(await runs.of("worker"))).toEqual([2]);
  });
});

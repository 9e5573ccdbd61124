import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { expect, onTestFinished, test, vi } from "vitest";
import type { RunEvent } from "../../conversation/run-event.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { createAnswerFold, createLiveText, type LivePiece, liveFiles } from "./live-text.ts";
import { readLiveText } from "./read-live-text.ts";

function streamed(event: object): RunEvent {
  return { type: "model-streamed", event } as RunEvent;
}

function started(id: string): RunEvent {
  return streamed({ type: "message-started", id });
}

function delta(text: string, index = 0): RunEvent {
  return streamed({ type: "text-delta", index, text });
}

const over = { type: "answer-lost" } as RunEvent;

/** A session that this process has open, with clocks that tests turn. */
function openSession() {
  const transcripts = mkdtempSync(join(tmpdir(), "retinue-live-"));
  onTestFinished(() => rmSync(transcripts, { recursive: true, force: true }));
  const files = sessionFiles(transcripts, "af0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00");
  mkdirSync(files.directory, { recursive: true });
  writeFileSync(files.transcript, "");
  const taken = takeOwnerLock(files.transcript);
  onTestFinished(() => (taken.type === "taken" ? taken.lock.release() : undefined));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const live = createLiveText(liveFiles(files));
  onTestFinished(() => live.close());
  const attach = () => {
    const reader = readLiveText(files);
    onTestFinished(() => reader[Symbol.dispose]());
    return reader;
  };
  return { live, attach };
}

test("one who comes while the model pauses sees the text before, by block, and then what comes [CLI-1, STU-1]", async () => {
  const { live, attach } = openSession();
  live.onEvent("main", started("m1"));
  live.onEvent("main", delta("said before"));
  live.onEvent("main", delta("a second block", 1));
  const reader = attach();
  expect(await reader.read()).toEqual([]);
  vi.advanceTimersByTime(1000);
  expect(await reader.read()).toEqual([
    { agentId: "main", answer: "m1", block: 0, text: "said before", isFirst: true },
    { agentId: "main", answer: "m1", block: 1, text: "a second block" },
  ]);
  live.onEvent("main", delta(" and", 1));
  live.onEvent("main", delta(" more", 1));
  live.onEvent("main", over);
  vi.advanceTimersByTime(1000);
  expect(await reader.read()).toEqual([
    { agentId: "main", answer: "m1", block: 1, text: " and more" },
    { agentId: "main", answer: "m1", block: 0 },
  ]);
});

test("a second viewer gets the open answers alone, and no viewer gets a text twice when the file is started anew [STU-1]", async () => {
  const { live, attach } = openSession();
  const texts = (pieces: readonly LivePiece[]) => pieces.map(({ answer, text }) => [answer, text]);
  const first = attach();
  live.onEvent("main", started("m1"));
  live.onEvent("main", delta("over"));
  vi.advanceTimersByTime(1000);
  expect(texts(await first.read())).toEqual([["m1", "over"]]);
  live.onEvent("main", over);
  live.onEvent("main", started("m2"));
  const long = "x".repeat(5_000_000);
  live.onEvent("main", delta(long));
  vi.advanceTimersByTime(100);
  const second = attach();
  expect(texts(await second.read())).toEqual([["m2", long]]);
  // The file with the end of the first answer is gone already.
  expect(texts(await first.read())).toEqual([
    ["m2", long],
    ["m1", undefined],
  ]);
  live.onEvent("main", delta("y"));
  vi.advanceTimersByTime(100);
  expect(texts(await first.read())).toEqual([["m2", "y"]]);
  live.close();
  expect(texts(await first.read())).toEqual([["m2", undefined]]);
});

test("what an agent is saying can be asked for in its own process, without files", () => {
  const live = createLiveText(undefined);
  live.onEvent("a1", started("m1"));
  live.onEvent("a1", delta("half an "));
  live.onEvent("a1", delta("answer"));
  live.onEvent("a2", delta("another"));
  expect(live.partialText("a1")).toBe("half an answer");
  live.onEvent("a1", { type: "run-ended" } as RunEvent);
  expect(live.partialText("a1")).toBe("");
  expect(live.partialText("a2")).toBe("another");
});

test("an answer that is asked for again begins anew", () => {
  const fold = createAnswerFold();
  for (const event of [started("m1"), delta("lost"), { type: "model-retried" } as RunEvent])
    fold.onEvent(event);
  expect(fold.open).toBeUndefined();
  for (const event of [started("m2"), delta("kept", 1)]) fold.onEvent(event);
  expect(fold.open).toMatchObject({ id: "m2", head: { id: "m2" }, texts: [undefined, "kept"] });
});

test("nothing is looked for once an answer has ended", () => {
  const { live } = openSession();
  live.onEvent("main", delta("x"));
  expect(vi.getTimerCount()).toBe(1);
  live.onEvent("main", over);
  expect(vi.getTimerCount()).toBe(0);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { RunEvent } from "../../../conversation/run-event.ts";
import { AnswerFollower, AnswerRelay } from "./answer-relay.ts";

test("one who comes while the model pauses sees what was said before [CLI-1]", async () => {
  const directory = mkdtempSync(join(tmpdir(), "retinue-relay-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const relay = new AnswerRelay(directory);
  const follower = new AnswerFollower(directory);
  const hear = (event: object) => relay.hear({ type: "model-streamed", event } as RunEvent);
  hear({ type: "message-started", id: "m1" });
  hear({ type: "text-delta", index: 0, text: "said before" });
  expect(await follower.read(Date.now())).toEqual([]);
  vi.advanceTimersByTime(2000);
  expect(await follower.read(Date.now())).toEqual([{ answer: "m1", block: 0, text: "said before" }]);
  relay.close();
  expect(vi.getTimerCount()).toBe(0);
});

test("nothing is looked for once an answer has ended", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const relay = new AnswerRelay("/nowhere");
  relay.hear({ type: "model-streamed", event: { type: "text-delta", index: 0, text: "x" } } as RunEvent);
  expect(vi.getTimerCount()).toBe(1);
  relay.hear({ type: "answer-lost" } as RunEvent);
  expect(vi.getTimerCount()).toBe(0);
});

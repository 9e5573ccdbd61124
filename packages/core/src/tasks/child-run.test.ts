import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldChildRun, isStopOwed } from "./child-run.ts";
import { foldTranscript } from "./transcript-task.ts";

const plan: JsonRecord = { type: "retinue-plan", plan: { task: { prompt: "Look.", background: true } } };
const reported = (event: string): JsonRecord => ({ type: "retinue-told", event });
const line = (type: string, content: unknown, more: object = {}): JsonRecord => ({
  type,
  isSidechain: true,
  uuid: crypto.randomUUID(),
  message: { role: type, id: "m1", content },
  ...more,
});
const prompt = line("user", "Look.", { parentUuid: null });
const results = line("user", [{ type: "tool_result", tool_use_id: "x", content: "ok" }]);
const answer = line("assistant", [
  { type: "text", text: "I look." },
  { type: "tool_use", id: "x", name: "Bash", input: { command: "npm\n test" } },
]);
const ending = (reason = "end_turn"): JsonRecord => ({
  type: "system",
  runEnding: { status: "stopped", reason },
});

describe("[HKS-8] after a crash hooks are notified of a stop when they were notified of the start, and only then", () => {
  test.each<readonly [string, boolean, readonly JsonRecord[]]>([
    ["it got no further than its plan", false, [plan]],
    ["hooks were about to hear of its start", true, [plan, reported("SubagentStart")]],
    ["it works", true, [plan, reported("SubagentStart"), prompt, answer]],
    [
      "hooks were about to hear of its stop",
      false,
      [plan, reported("SubagentStart"), prompt, reported("SubagentStop")],
    ],
    [
      "hooks made it continue",
      true,
      [plan, reported("SubagentStart"), prompt, reported("SubagentStop"), reported("goes-on"), answer],
    ],
    ["it failed and hooks had not heard yet", true, [plan, reported("SubagentStart"), prompt, ending()]],
    ["it was taken up again and not begun", false, [plan, prompt, ending(), plan, results]],
    ["it had no hooks and works", true, [plan, prompt]],
    ["it had no hooks and ended", false, [plan, prompt, ending()]],
    ["another program wrote it", false, [prompt, answer]],
  ])("%s: %s", (_, owed, records) => {
    expect(isStopOwed(records)).toBe(owed);
  });
});

describe("[TRN-4] what a transcript shows of a child that was cut off", () => {
  test("what was in flight, what repeating it does, and what it said last", () => {
    const intents = { type: "retinue-intents", calls: [{ id: "x", name: "Bash", repeats: "idempotent" }] };
    expect(foldChildRun([plan, prompt, answer, intents])).toMatchObject({
      hasStarted: true,
      inFlight: [{ name: "Bash", input: "npm test", repeats: "idempotent" }],
      lastText: "I look.",
      last: { prompt: "Look.", background: true },
    });
    expect(foldChildRun([plan, prompt, answer, results]).inFlight).toEqual([]);
  });

  test("one that waited for its place has its task and no words", () => {
    expect(foldChildRun([plan])).toMatchObject({
      hasStarted: false,
      first: { prompt: "Look." },
      inFlight: [],
    });
  });

  test("a plan begins a run, so an ending before it does not count", () => {
    expect(foldTranscript([plan, prompt, ending()]).state).toBe("stopped");
    expect(foldTranscript([plan, prompt, ending(), plan])).not.toHaveProperty("state");
  });

  test("any lines will do", () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.constantFrom("type", "event", "plan", "message", "uuid"), fc.jsonValue())),
        (lines) => {
          foldChildRun(lines);
        },
      ),
    );
  });
});

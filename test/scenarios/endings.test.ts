import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import type { SpawnOptions } from "../../src/index.ts";

const look: Step = { text: "I look.", calls: [{ name: "Glob", input: { pattern: "*" } }] };

interface Case {
  readonly steps: readonly Step[];
  readonly options?: SpawnOptions;
  readonly ending: Partial<RunEnding>;
  /** What the parent's model reads of it. */
  readonly read: RegExp;
  readonly isError: boolean;
  readonly stops?: boolean;
}

const cases: readonly [what: string, Case][] = [
  [
    "completed",
    {
      steps: [look, "Found."],
      ending: { status: "completed", reason: "end_turn", text: "Found." },
      read: /^Found\./,
      isError: false,
    },
  ],
  [
    "completed after silence, because it was asked once",
    {
      steps: [{ text: "" }, "Now in words."],
      ending: { status: "completed", reason: "end_turn", text: "Now in words." },
      read: /^Now in words\./,
      isError: false,
    },
  ],
  [
    "partial at the turn limit, with what it has",
    {
      steps: [look, "Half of it."],
      options: { maxTurns: 1 },
      ending: { status: "partial", reason: "max_turns", text: "Half of it." },
      read: /partial result \(max_turns\).*\n\nHalf of it\./,
      isError: false,
    },
  ],
  [
    "partial where the answer was cut",
    {
      steps: [{ text: "As far as", stopReason: "max_tokens" }],
      ending: { status: "partial", reason: "max_tokens", text: "As far as" },
      read: /partial result \(max_tokens\).*\n\nAs far as/,
      isError: false,
    },
  ],
  [
    "failed by its model, with what it said last",
    {
      steps: [look, { failure: "unauthorized" }],
      ending: { status: "failed", reason: "unauthorized", text: "I look." },
      read: /failed \(unauthorized\).*\n\nI look\./,
      isError: true,
    },
  ],
  [
    "failed where the model declines",
    {
      steps: [{ text: "No.", stopReason: "refusal" }],
      ending: { status: "failed", reason: "refusal", text: "No." },
      read: /failed \(refusal\).*\n\nNo\./,
      isError: true,
    },
  ],
  [
    "stopped, and by whom",
    {
      steps: [look, { text: "And then", failure: "stall", after: 1 }],
      ending: { status: "stopped", reason: "stopped-by-program", text: "I look." },
      read: /was stopped \(stopped-by-program\).*\n\nI look\./,
      isError: true,
      stops: true,
    },
  ],
];

describe("[AGT-5, LIM-2] every ending of a child has one shape", () => {
  test.each(cases)("%s", async (_what, { steps, options = {}, ending, stops }) => {
    await using sample = await createSampleRuntime(steps);
    const handle = sample.runtime.spawn("general-purpose", "Work.", options);
    if (stops === true) {
      let turns = 0;
      for await (const event of handle.events) {
        turns += event.type === "turn-started" ? 1 : 0;
        if (turns === 2 && event.type === "model-streamed") void handle.stop();
      }
    }
    const result = await handle.result;
    expect(result).toMatchObject(ending);
    expect(Object.keys(result)).toEqual(
      expect.arrayContaining([
        "status",
        "reason",
        "text",
        "denials",
        "totals",
        "agentId",
        "agentType",
        "outputFile",
      ]),
    );
    expect(result.totals.usage).toEqual({
      inputTokens: expect.any(Number),
      outputTokens: expect.any(Number),
      cacheReadTokens: expect.any(Number),
      cacheWriteTokens: expect.any(Number),
    });
    expect(result.status === "failed").toBe(typeof result.error === "string" && result.status !== "partial");
  });

  test.each(cases)("[AGT-4] and the parent's model reads it: %s", async (_what, {
    steps,
    options = {},
    read,
    isError,
    stops,
  }) => {
    await using sample = await createSampleRuntime(steps);
    await using session = await sample.runtime.open();
    const agent = session.loopTools().find(({ name }) => name === "Agent");
    const input = {
      description: "work",
      prompt: "Work.",
      max_turns: options.maxTurns,
    };
    const watching = (async () => {
      if (stops !== true) return;
      let turns = 0;
      for await (const { event, state } of session.tasks.watch()) {
        turns += event.type === "turn-started" ? 1 : 0;
        if (turns === 2 && event.type === "model-streamed") void session.tasks.stop(state.id, "program");
        if (event.type === "run-ended") return;
      }
    })();
    const result = await agent?.call(input);
    await watching;
    expect(result).toMatchObject({ isError });
    expect(result?.text).toMatch(read);
    const [task] = session.tasks.list();
    expect(result?.text).toContain(`[agent id ${task?.id} (resume it with this id); `);
  });

  test("refused: nothing was started, and the reason says what to do", async () => {
    await using sample = await createSampleRuntime([]);
    await using session = await sample.runtime.open();
    const agent = session.loopTools().find(({ name }) => name === "Agent");
    const result = await agent?.call({ description: "x", prompt: "y", resume: "a0123456789abcdef" });
    expect(result).toMatchObject({ isError: true });
    expect(result?.text).toMatch(/^The agent was not started: .*a0123456789abcdef/);
    expect(session.tasks.list()).toEqual([]);
  });

  test("[SPN-6] a child that fails takes neither its sibling nor its parent down", async () => {
    await using sample = await createSampleRuntime([
      { match: "TASK-BAD", failure: "unauthorized" },
      { match: "TASK-GOOD", text: "Good." },
      {
        calls: ["TASK-BAD", "TASK-GOOD"].map((prompt) => ({
          name: "Agent",
          input: { description: "x", prompt },
        })),
      },
      { text: "One of two." },
    ]);
    const result = await sample.runtime.run("Begin.").result;
    expect(result).toMatchObject({ status: "completed", text: "One of two." });
    const reported = JSON.stringify(sample.requests.at(-1)?.messages.at(-1));
    expect(reported).toContain("Good.");
    expect(reported).toContain("failed (unauthorized)");
  });
});

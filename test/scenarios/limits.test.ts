import { join } from "node:path";
import { costOf } from "@retinue/core/conversation/usage.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { AgentHandle } from "@retinue/core/kernel/run-handle.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { lookUpModel } from "@retinue/core/models/look-up-model.ts";
import { defineTool } from "@retinue/core/tools/tool.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createManualClock } from "@retinue/testing/manual-clock.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step, StepFunction } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand } from "./run-command.ts";

const model = "claude-haiku-4-5";
const price = { input: 10, output: 50, cacheRead: 1, cacheWrite: 10 };

/** Deterministic numbers that look like chance. */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

async function createStage(
  respond: StepFunction,
  settings: object,
  environment: Record<string, string> = {},
) {
  const provider = await startFakeProvider({ respond });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  place.write("../home/.claude/settings.json", JSON.stringify(settings));
  const runtime = createRuntime({
    cwd: place.cwd,
    home: place.home,
    settingSources: ["user", "project", "local"],
    transcripts: true,
    env: {
      PATH: process.env["PATH"],
      ANTHROPIC_BASE_URL: provider.url,
      ANTHROPIC_API_KEY: "x",
      ANTHROPIC_MODEL: model,
      CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS: "50",
      ...environment,
    },
    managedDirectory: join(place.home, "managed"),
  });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  return { provider, runtime };
}

describe("[LIM-3] fifty children at the same time under one ceiling of money", () => {
  test.each([1, 2, 3])("never exceed it, whatever their calls cost (%i)", async (seed) => {
    const ceiling = 0.5;
    const chance = createChance(seed);
    const { provider, runtime } = await createStage(
      ({ maxTokens = 64_000, messages }) => {
        const outputTokens = Math.min(maxTokens, Math.ceil(chance() ** 4 * 20_000));
        const isCut = outputTokens === maxTokens;
        return {
          text: `Turn ${messages.length}.`,
          ...(chance() < 0.8 && !isCut
            ? {
                calls: [
                  {
                    name: "TodoWrite",
                    input: {
                      todos: [{ content: String(messages.length), status: "pending", activeForm: "x" }],
                    },
                  },
                ],
              }
            : {}),
          ...(isCut ? { stopReason: "max_tokens" as const } : {}),
          usage: { outputTokens },
        };
      },
      { limits: { tree: { usd: ceiling } } },
    );
    await using session = await runtime.open();
    const handles = Array.from({ length: 50 }, (_, index) =>
      session.spawn("general-purpose", `Work ${index}.`),
    );
    const results = await Promise.allSettled(handles.map(({ result }) => result));
    const known = lookUpModel(model).facts.price;
    if (known === undefined) throw new Error("the price is needed for this test");
    const paid = provider.requests.map(({ usage }) => (usage === undefined ? 0 : costOf(usage, known)));
    const sum = paid.reduce((total, each) => total + each, 0);
    expect(sum).toBeLessThanOrEqual(ceiling);
    expect(sum).toBeGreaterThan(ceiling / 2);
    const limited = results.flatMap((result) => {
      if (result.status === "rejected") return [String(result.reason)];
      return result.value.reason === "max_budget" ? [result.value.error ?? ""] : [];
    });
    expect(limited.length).toBeGreaterThan(0);
    for (const text of limited) {
      expect(text).toMatch(
        /Budget limit reached: \d+\.\d+ of 0\.50 US dollars of the whole tree left(; the next call may cost up to \d+\.\d+)?\./,
      );
    }
    for (const result of results) {
      if (result.status === "fulfilled") expect(["completed", "partial"]).toContain(result.value.status);
    }
    await expect(session.spawn("general-purpose", "One more.".repeat(40_000)).result).rejects.toThrow(
      /Budget limit reached: .* of 0\.50 US dollars/,
    );
  });
});

describe("[LIM-3] the ceiling of a session", () => {
  const expensive = (text: string): Step => ({ text, usage: { inputTokens: 1000, outputTokens: 1000 } });

  test("counts what children spend, and a child that meets it ends as partial with what it has", async () => {
    const look: Step = {
      text: "I look.",
      calls: [{ name: "Glob", input: { pattern: "*" } }],
      usage: { inputTokens: 1000, outputTokens: 2000 },
    };
    await using sample = await createSampleRuntime([look, expensive("Never said.")], {
      modelOptions: { facts: { price } },
    });
    await using session = await sample.runtime.open({ maxBudgetUsd: 0.16 });
    const child = await session.spawn("general-purpose", "Work.").result;
    expect(child).toMatchObject({ status: "partial", reason: "max_budget", text: "I look." });
    expect(child.totals.costUsd).toBeCloseTo(0.11);
    const main = await session.prompt("And you?").result;
    expect(main).toMatchObject({ status: "partial", reason: "max_budget", totals: { turns: 0 } });
    expect(sample.requests).toHaveLength(1);
  });

  test.each([
    [
      "tokens",
      { tokens: 60_000 },
      "max_total_tokens",
      /^Token limit reached: \d+ of 60000 tokens of the agent left/,
    ],
    [
      "tool calls",
      { toolCalls: 2 },
      "max_tool_calls",
      /^The limit of 2 tool calls of the agent was reached\.$/,
    ],
  ])("%s of an agent end it too", async (_what, agent, reason, error) => {
    const step: Step = {
      respond: ({ messages, toolChoice }) =>
        toolChoice === "none"
          ? "Handed in."
          : {
              text: "On it.",
              calls: [{ name: "Glob", input: { pattern: `*.${messages.length}` } }],
              usage: { inputTokens: 20_000 },
            },
      times: "any",
    };
    await using sample = await createSampleRuntime([step]);
    await sample.workspace.write("../home/.claude/settings.json", JSON.stringify({ limits: { agent } }));
    const result = await sample.runtime.spawn("general-purpose", "Work.").result;
    expect(result).toMatchObject({ status: "partial", reason, error: expect.stringMatching(error) });
    expect(result.text).not.toBe("");
  });

  test("a program's limits for one child count where they are the smallest", async () => {
    const calls = [{ name: "Glob", input: { pattern: "*" } }];
    await using sample = await createSampleRuntime([
      { text: "One.", calls },
      { text: "Two.", calls },
      "Handed in.",
    ]);
    const result = await sample.runtime.spawn("general-purpose", "Work.", { limits: { toolCalls: 1 } })
      .result;
    expect(result).toMatchObject({ status: "partial", reason: "max_tool_calls", text: "Handed in." });
    await expect(
      sample.runtime.spawn("general-purpose", "Work.", { limits: { toolCalls: 0 } }).result,
    ).rejects.toThrow("limits.toolCalls needs a whole number from 1");
  });
});

/** A runtime with a clock that is moved by hand, and a tool that waits until it is let go. */
async function createTimedStage(
  steps: readonly Step[],
  options: Omit<RuntimeOptions, "settings"> & { settings?: object } = {},
) {
  const clock = createManualClock();
  const called = Promise.withResolvers<void>();
  const wait = defineTool({
    name: "Wait",
    description: "Waits.",
    effect: "read",
    inputSchema: { type: "object" },
    call: (_input, { signal }) =>
      new Promise((_, reject) => {
        called.resolve();
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  });
  const { settings, ...runtime } = options;
  const sample = await createSampleRuntime(steps, { clock, tools: ["default", wait], ...runtime });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  if (settings !== undefined)
    await sample.workspace.write("../home/.claude/settings.json", JSON.stringify(settings));
  return { clock, sample, called: called.promise };
}

const waiting: Step = { text: "I wait.", calls: [{ name: "Wait", input: {} }] };

describe("[LIM-5] a child that gives no sign of life", () => {
  async function background(session: Session): Promise<string> {
    const agent = session.loopTools().find(({ name }) => name === "Agent");
    await agent?.call({ description: "wait long", prompt: "Work.", run_in_background: true });
    const [task] = session.tasks.list();
    if (task === undefined) throw new Error("no child was started");
    return task.id;
  }

  test("in the background is reported to its parent and the person, then stopped as stalled", async () => {
    const notices: string[] = [];
    const { clock, sample, called } = await createTimedStage([waiting], {
      onWarning: (text) => void notices.push(text),
    });
    await using session = await sample.runtime.open();
    const id = await background(session);
    await called;
    await clock.advance(299_000);
    expect(session.tasks.get(id)?.silentMs).toBeUndefined();
    await clock.advance(1000);
    expect(session.tasks.get(id)).toMatchObject({ status: "running", silentMs: 300_000 });
    expect(notices).toEqual([
      'Agent "wait long" has given no sign of life for 300 s; TaskStop ends it, else it is stopped after twice that time.',
    ]);
    expect(JSON.stringify(session.takeNotices())).toContain("<status>stalled</status>");
    await clock.advance(300_000);
    const state = await session.tasks.ended(id);
    expect(state?.ending).toMatchObject({ status: "stopped", reason: "stalled", text: "I wait." });
    expect(notices.at(-1)).toBe('Agent "wait long" has given no sign of life for 600 s and was stopped.');
    expect(clock.sleeping()).toBe(0);
  });

  test("is stopped after the time of the variable", async () => {
    const { clock, sample, called } = await createTimedStage([waiting], {
      env: { PATH: process.env["PATH"], CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS: "4000" },
    });
    await using session = await sample.runtime.open();
    const id = await background(session);
    await called;
    await clock.advance(4000);
    expect((await session.tasks.ended(id))?.ending).toMatchObject({ reason: "stalled" });
  });

  test("in the foreground only where a limit is set, and once it is moved to the background", async () => {
    const { clock, sample, called } = await createTimedStage([waiting]);
    await using session = await sample.runtime.open();
    const handle = session.spawn("general-purpose", "Work.");
    await called;
    await clock.advance(3_600_000);
    expect(handle.state()).toMatchObject({ status: "running" });
    await handle.detach();
    await clock.advance(60_000);
    expect(handle.state()?.silentMs).toBeGreaterThan(3_600_000);
    await clock.advance(300_000);
    expect(await handle.result).toMatchObject({ status: "stopped", reason: "stalled" });
  });

  test("but not while a person is asked", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    const { clock, sample } = await createTimedStage(
      [{ calls: [{ name: "Bash", input: { command: "touch x" } }] }, "Done."],
      {
        settings: { limits: { agent: { silenceSeconds: 60, seconds: 90 }, tree: { seconds: 100 } } },
        approver: {
          async approve() {
            asked.resolve();
            await answer.promise;
            return { type: "deny" };
          },
        },
      },
    );
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    await asked.promise;
    await clock.advance(24 * 3_600_000);
    expect(handle.state()).toMatchObject({ status: "running" });
    answer.resolve();
    expect(await handle.result).toMatchObject({ status: "completed", text: "Done." });
  });
});

describe("[LIM-3] time", () => {
  test.each([
    ["of the agent", { agent: { seconds: 30 } }],
    ["of the whole tree", { tree: { seconds: 30 } }],
  ])("%s ends a child with what it has", async (whose, limits) => {
    const { clock, sample, called } = await createTimedStage([waiting], { settings: { limits } });
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    await called;
    await clock.advance(30_000);
    expect(await handle.result).toMatchObject({
      status: "partial",
      reason: "max_time",
      text: "I wait.",
      error: `The time limit of 30 s ${whose} was reached.`,
    });
    expect(clock.sleeping()).toBe(0);
  });

  test("of the whole tree ends the main agent too", async () => {
    const { clock, sample, called } = await createTimedStage([waiting]);
    const run = sample.runtime.run("Work.", { limits: { tree: { seconds: 5 } } });
    await called;
    await clock.advance(5000);
    expect(await run.result).toMatchObject({ status: "partial", reason: "max_time", text: "I wait." });
  });

  test("ends also a main agent that does not respect it, with what was seen of it", async () => {
    const clock = createManualClock();
    const called = Promise.withResolvers<void>();
    const deaf = defineTool({
      name: "Wait",
      description: "Waits.",
      effect: "read",
      inputSchema: { type: "object" },
      call() {
        called.resolve();
        return new Promise<never>(() => undefined);
      },
    });
    const sample = await createSampleRuntime([waiting], { clock, tools: ["default", deaf] });
    onTestFinished(() => sample[Symbol.asyncDispose]());
    const run = sample.runtime.run("Work.", { limits: { tree: { seconds: 5 } } });
    await called.promise;
    await clock.advance(5000);
    await clock.advance(6000);
    const ending = { status: "partial", reason: "max_time", text: "I wait.", totals: { turns: 1 } };
    expect(await run.result).toMatchObject(ending);
  });

  test("of the whole tree ends a compaction that was requested", async () => {
    const asked = Promise.withResolvers<void>();
    const hang: Step = async () => {
      asked.resolve();
      await new Promise(() => undefined);
      return "Never.";
    };
    const words = "Words. ".repeat(400);
    const { clock, sample } = await createTimedStage([words, words, words, hang]);
    await using session = await sample.runtime.open({ limits: { tree: { seconds: 5 } } });
    for (const prompt of ["One.", "Two.", "Three."]) await session.prompt(prompt).result;
    const compacting = session.compact();
    await asked.promise;
    await clock.advance(5000);
    expect(await compacting.result).toMatchObject({ status: "partial", reason: "max_time" });
  });

  test("of the main agent counts over all reminders to hand in a typed result", async () => {
    const clock = createManualClock();
    const slow: Step = async () => {
      await clock.advance(4000);
      return "Words, no result.";
    };
    const sample = await createSampleRuntime([slow, slow, slow, slow], { clock });
    onTestFinished(() => sample[Symbol.asyncDispose]());
    await sample.workspace.write(
      ".claude/agents/timed.md",
      "---\nname: timed\ndescription: d\nlimits: { seconds: 10 }\n---\nWork.",
    );
    const output = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
    const result = await sample.runtime.run("Work.", { agent: "timed", output }).result;
    expect(result).toMatchObject({ status: "partial", reason: "max_time", totals: { turns: 2 } });
  });

  test("of one tool call ends the call, and the agent continues", async () => {
    const { clock, sample, called } = await createTimedStage([waiting, "Then without."], {
      settings: { limits: { agent: { toolSeconds: 20 } } },
    });
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    await called;
    await clock.advance(20_000);
    expect(await handle.result).toMatchObject({ status: "completed", text: "Then without." });
    expect(JSON.stringify(sample.requests[1]?.messages)).toContain(
      "Wait did not end within 20 s, the limit for one call, and was stopped",
    );
  });

  test("that a child waits for its place does not count", async () => {
    const { clock, sample, called } = await createTimedStage([waiting, waiting], {
      settings: { limits: { agents: 1, overflow: "queue", agent: { seconds: 30 } } },
    });
    await using session = await sample.runtime.open();
    const first = session.spawn("general-purpose", "Work.");
    await called;
    const second = session.spawn("general-purpose", "Work too.");
    await second.started;
    await clock.advance(29_000);
    expect(second.state()).toMatchObject({ status: "queued", queuePosition: 1 });
    await clock.advance(1000);
    expect(await first.result).toMatchObject({ reason: "max_time" });
    await clock.advance(29_000);
    expect(second.state()).toMatchObject({ status: "running" });
    await clock.advance(1000);
    expect(await second.result).toMatchObject({ reason: "max_time" });
  });
});

describe("limits are seen before they are met", () => {
  test("[LIM-3] `retinue plan` shows each with where it came from", async () => {
    const place = createPlace();
    place.write(
      "../home/.claude/settings.json",
      JSON.stringify({ limits: { agent: { seconds: 900 }, tree: { usd: 5 } } }),
    );
    place.write(
      ".claude/agents/frugal.md",
      "---\nname: frugal\ndescription: Use it for cheap work.\nlimits:\n  usd: 0.25\n  seconds: 1200\n---\nBe brief.\n",
    );
    const { out, err, code } = await runCommand(place, [
      "plan",
      "frugal",
      "--background",
      "--max-time",
      "10m",
    ]);
    expect({ err, code }).toMatchObject({ code: 0 });
    expect(out).toMatch(/time +at most 900 s +\(.*settings\.json\)/);
    expect(out).toMatch(/money +at most 0\.25 US dollars +\(the definition\)/);
    expect(out).toMatch(/silence +reported after 300 s, stopped after 600 s +\(the default\)/);
    expect(out).toMatch(/time +at most 600 s for the whole tree +\(the call\)/);
    expect(out).toMatch(/money +at most 5 US dollars for the whole tree/);
  });

  test("a setting that cannot be kept ends the start", async () => {
    const place = createPlace();
    place.write("../home/.claude/settings.json", '{\n  "limits": {\n    "tree": { "usd": "5" }\n  }\n}\n');
    const { err, code } = await runCommand(place, ["-p", "hello"]);
    expect(code).not.toBe(0);
    const said = 'The setting "limits.tree.usd" cannot be read: it needs a number above 0, but is "5"';
    expect(err.replace(/\s+/g, " ")).toContain(said);
    expect(err).toContain(".claude/settings.json:3:");
  });

  test("[LIM-1] `retinue tasks` shows who waits for a place, and in which order", async () => {
    const { sample, called } = await createTimedStage([waiting], {
      settings: { limits: { agents: 1, overflow: "queue" } },
    });
    await using session = await sample.runtime.open();
    const handles: AgentHandle[] = [];
    // One after another: what a start reads from files may take one of several longer than the next.
    for (const prompt of ["First.", "Second.", "Third."]) {
      const handle = session.spawn("general-purpose", prompt);
      await handle.started;
      handles.push(handle);
    }
    const [first, second, third] = handles.map(({ id }) => id);
    await called;
    const place = { cwd: sample.workspace.project, home: sample.home };
    const { out } = await runCommand(place, ["tasks"]);
    expect(out).toMatch(new RegExp(`${first} .* running `));
    expect(out).toMatch(new RegExp(`${second} .* queued 1 `));
    expect(out).toMatch(new RegExp(`${third} .* queued 2 `));
    await handles[1]?.stop();
    expect((await runCommand(place, ["tasks"])).out).toMatch(new RegExp(`${third} .* queued 1 `));
    for (const handle of handles) await handle.stop();
    expect((await runCommand(place, ["tasks"])).out).not.toMatch(/queued|running/);
  });
});

describe("[LIM-6] a child that repeats a call", () => {
  const times = (count: number, call: { name: string; input: object }): Step => ({
    calls: [call],
    times: count,
  });

  test("polls a status with a command as long as it needs to, and is reported nothing of it", async () => {
    const poll = times(12, { name: "Bash", input: { command: "cat status" } });
    await using sample = await createSampleRuntime([poll, "It is ready."], {
      canUseTool: async () => ({ behavior: "allow" }),
    });
    await sample.workspace.write("status", "pending");
    expect(await sample.runtime.spawn("general-purpose", "Wait.").result).toMatchObject({
      status: "completed",
      text: "It is ready.",
    });
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).not.toContain("in a row");
  });

  test("of a file that is missing is reported so, and ends at the limit that its definition sets", async () => {
    const read = times(5, { name: "Read", input: { file_path: "missing.txt" } });
    await using sample = await createSampleRuntime([read, "There is none."]);
    const file = "---\nname: reader\ndescription: Reads.\nlimits: { repeatedCalls: 5 }\n---\nRead.\n";
    await sample.workspace.write(".claude/agents/reader.md", file);
    expect(await sample.runtime.spawn("reader", "Read it.").result).toMatchObject({
      status: "partial",
      reason: "loop",
      error: "The agent made the same call 5 times in a row, with the same result.",
      text: "There is none.",
    });
    const reported = JSON.stringify(sample.requests[3]?.messages.at(-1));
    expect(reported).toContain("You made the same call 3 times in a row, with the same result.");
    expect(reported).toContain("After 5 times the run ends.");
  });
});

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand, runInProcess } from "./run-command.ts";

type CanUseTool = NonNullable<RuntimeOptions["canUseTool"]>;

const says = (word: string) => (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(word);
const call = (prompt: string, type = "worker") => ({
  name: "Agent",
  input: { description: `do ${prompt}`, prompt, subagent_type: type },
});
const agents = [
  { name: "worker", description: "Works.", prompt: "You work.", tools: ["Read", "Edit", "Bash(git status)"] },
  { name: "reader", description: "Reads.", prompt: "You read.", tools: ["Read", "WebFetch"] },
];
const modelOptions = { facts: { price: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } } };

async function openSample(steps: readonly Step[], options: RuntimeOptions = {}): Promise<SampleRuntime> {
  const sample = await createSampleRuntime(steps, { agents, modelOptions, ...options });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  return sample;
}

const usage = (tokens: number): ScriptedStep["usage"] => ({
  inputTokens: tokens,
  outputTokens: Math.round(tokens / 10),
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
});

const twoWorkers: readonly Step[] = [
  { match: says("WORK"), text: "Piece done.", times: "any" },
  { calls: [call("WORK one"), { name: "Bash", input: { command: "echo between" } }, call("WORK two")] },
  { text: "Answered." },
];

describe("a batch of agents above a threshold", () => {
  test.each([
    ["askAboveAgents", { askAboveAgents: 1 }],
    ["askAboveUsd", { askAboveUsd: 0.0001 }],
  ])("is asked about once, before any of it starts [BIL-1, BIL-2]: %s", async (name, quotes) => {
    const asked: { tool: string; input: unknown; context: Parameters<CanUseTool>[2]; started: number }[] = [];
    const sample = await openSample(twoWorkers, {
      settings: { quotes, permissions: { allow: ["Bash(echo:*)"] } },
      canUseTool: async (tool, input, context) => {
        asked.push({ tool, input, context, started: sample.requests.length });
        return { behavior: "allow" };
      },
    });
    await using session = await sample.runtime.open();
    const result = await session.run("Begin.").result;
    expect(result.text).toBe("Answered.");
    expect(asked).toHaveLength(1);
    const [question] = asked;
    expect(question).toMatchObject({
      tool: "Agent",
      input: { agents: [{ prompt: "WORK one" }, { prompt: "WORK two" }] },
      started: 1,
    });
    expect(question?.context.reason).toContain(`quotes.${name}`);
    expect(question?.context.quote).toMatchObject({
      agents: [
        {
          agentType: "worker",
          basis: { from: "estimate" },
          rights: {
            write: { level: "full", tools: ["Edit"] },
            run: { level: "narrowed", tools: ["Bash(git status)"] },
            reach: { level: "none", tools: [] },
          },
        },
        { agentType: "worker" },
      ],
      unpriced: 0,
    });
    expect(session.tasks.list().map(({ status }) => status)).toEqual(["completed", "completed"]);
  });

  test("starts nothing of it after a no, whose words the model reads [BIL-2]", async () => {
    const sample = await openSample(twoWorkers, {
      settings: { quotes: { askAboveAgents: 1 }, permissions: { allow: ["Bash(echo:*)"] } },
      canUseTool: async () => ({ behavior: "deny", message: "too dear today" }),
    });
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    expect(session.tasks.list()).toEqual([]);
    const results = JSON.stringify(sample.requests.at(-1)?.messages.at(-1));
    expect(results.match(/None of these 2 agents was started\. [^"]*too dear today/g)).toHaveLength(2);
    expect(results).toContain("between");
  });

  test("is refused with a sentence in unattended runs, and settings are not lifted by a mode [BIL-2]", async () => {
    const sample = await openSample(twoWorkers, {
      settings: { quotes: { askAboveAgents: 1 }, permissions: { allow: ["Bash(echo:*)"] } },
    });
    for (const options of [{}, { skipPermissions: true }]) {
      await using session = await sample.restart(twoWorkers).runtime.open(options);
      const { denials } = await session.run("Begin.").result;
      expect(session.tasks.list()).toEqual([]);
      expect(denials).toHaveLength(2);
      expect(denials[0]?.reason).toMatch(
        /None of these 2 agents was started\. .*2 agents would start: likely \$\d.*settings ask above 1 agent \(quotes\.askAboveAgents\), and no one can be asked here\. A person can raise `quotes`/,
      );
    }
  });

  test("a batch below every threshold is not asked about, and nothing is where settings have no threshold [BIL-2]", async () => {
    for (const quotes of [{ askAboveAgents: 2, askAboveUsd: 1000 }, {}, undefined]) {
      const sample = await openSample(twoWorkers, {
        settings: { ...(quotes === undefined ? {} : { quotes }), permissions: { allow: ["Bash(echo:*)"] } },
        canUseTool: async () => {
          throw new Error("nobody is to be asked");
        },
      });
      await using session = await sample.runtime.open();
      await session.run("Begin.").result;
      expect(session.tasks.list().map(({ status }) => status)).toEqual(["completed", "completed"]);
    }
  });

  test("an unknown price is above every threshold [BIL-2]", async () => {
    const reasons: string[] = [];
    const sample = await openSample(twoWorkers, {
      settings: { quotes: { askAboveUsd: 1000 }, permissions: { allow: ["Bash(echo:*)"] } },
      ...{ modelOptions: { facts: { price: undefined } } },
      canUseTool: async (_tool, _input, { reason, quote }) => {
        reasons.push(`${quote?.unpriced} ${reason}`);
        return { behavior: "allow" };
      },
    });
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    expect(reasons).toEqual([expect.stringMatching(/^2 .*the price of 2 of them is not known/)]);
  });

  test("a yes that changes the batch is none, and a hook that changes a call has it asked about again [BIL-2]", async () => {
    const changing = await openSample(twoWorkers, {
      settings: { quotes: { askAboveAgents: 1 }, permissions: { allow: ["Bash(echo:*)"] } },
      canUseTool: async () => ({ behavior: "allow", updatedInput: { agents: [] } }),
    });
    await using refused = await changing.runtime.open();
    await refused.run("Begin.").result;
    expect(refused.tasks.list()).toEqual([]);

    const asked: unknown[] = [];
    const hooked = await openSample(twoWorkers, {
      settings: { quotes: { askAboveAgents: 1 }, permissions: { allow: ["Bash(echo:*)"] } },
      hooks: {
        PreToolUse: [
          {
            matcher: "Agent",
            hooks: [
              async ({ tool_input: input }: { readonly tool_input?: unknown }) => {
                const { prompt } = input as { readonly prompt: string };
                if (prompt !== "WORK two") return {};
                const updatedInput = { ...(input as object), prompt: "WORK two and a lot more" };
                return { hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput } };
              },
            ],
          },
        ],
      },
      canUseTool: async (_tool, input) => {
        asked.push(input);
        return { behavior: "allow" };
      },
    });
    await using session = await hooked.runtime.open();
    await session.run("Begin.").result;
    expect(asked).toMatchObject([
      { agents: [{ prompt: "WORK one" }, { prompt: "WORK two" }] },
      { agents: [{ prompt: "WORK one" }, { prompt: "WORK two and a lot more" }] },
    ]);
  });

  test("agents below agents are asked about in the same way [BIL-2]", async () => {
    const paths: string[][] = [];
    const lead = {
      name: "lead",
      description: "Leads.",
      prompt: "You lead.",
      tools: ["Read", "Edit", "Agent(worker)"],
    };
    const sample = await openSample(
      [
        { match: says("WORK"), text: "Piece done.", times: "any" },
        { match: says("LEAD"), calls: [call("WORK one"), call("WORK two")] },
        { match: says("LEAD"), text: "Both done." },
        { calls: [call("LEAD", "lead")] },
        { text: "All done." },
      ],
      {
        agents: [...agents, lead],
        settings: { quotes: { askAboveAgents: 1 }, limits: { depth: 2 } },
        canUseTool: async (_tool, _input, { agentPath }) => {
          paths.push(agentPath.map(({ name }) => name));
          return { behavior: "deny", message: "no" };
        },
      },
    );
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    expect(paths).toEqual([["main", "lead"]]);
    expect(session.tasks.list().map(({ agentType }) => agentType)).toEqual(["lead"]);
  });

  test("agents that start one by one, and below each other, are asked about when all of them are above a threshold [BIL-2]", async () => {
    const reasons: string[] = [];
    const tools = ["Read", "Edit", "Bash(git status)", "Agent(worker)"];
    const lead = { name: "lead", description: "Leads.", prompt: "You lead.", tools };
    const one = { calls: [call("WORK")] };
    const sample = await openSample(
      [
        { match: says("WORK"), text: "Piece done.", times: "any" },
        { match: says("LEAD"), ...one },
        { match: says("LEAD"), text: "Led." },
        ...[one, { calls: [call("LEAD", "lead")] }, one, one, { text: "First." }, one, { text: "Second." }],
      ],
      {
        agents: [...agents, lead],
        settings: { quotes: { askAboveAgents: 2 }, limits: { depth: 2 } },
        canUseTool: async (_tool, _input, { reason }) => {
          reasons.push(reason);
          return { behavior: "allow" };
        },
      },
    );
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    // The third of them is one that the second has started; with the yes the count begins anew, and so it does with a prompt.
    expect(reasons).toEqual([
      expect.stringMatching(
        /^an agent would start: .*; with 2 started before without a question, settings ask above 2/,
      ),
    ]);
    await session.run("And again.").result;
    expect(reasons).toHaveLength(1);
    expect(sample.requests.filter(says("WORK"))).toHaveLength(5);
  });

  test("what a hook makes of a call counts once [BIL-2]", async () => {
    let questions = 0;
    const sample = await openSample(twoWorkers, {
      settings: { quotes: { askAboveAgents: 3 }, permissions: { allow: ["Bash(echo:*)"] } },
      hooks: {
        PreToolUse: [
          async ({ tool_input: input }: { readonly tool_input?: unknown }) => ({
            hookSpecificOutput: {
              hookEventName: "PreToolUse",
              updatedInput: { ...(input as object), description: "changed" },
            },
          }),
        ],
      },
      canUseTool: async () => {
        questions += 1;
        return { behavior: "allow" };
      },
    });
    await using session = await sample.runtime.open();
    await session.run("Begin.").result;
    expect([questions, session.tasks.list().length]).toEqual([0, 2]);
  });

  test("agents that something else starts are asked about by the same call [BIL-2]", async () => {
    const reasons: string[] = [];
    const sample = await openSample([], {
      settings: { quotes: { askAboveAgents: 1 } },
      canUseTool: async (_tool, _input, { reason }) => {
        reasons.push(reason);
        return reasons.length === 1 ? { behavior: "allow" } : { behavior: "deny", message: "no" };
      },
    });
    await using session = await sample.runtime.open();
    const request = { agentType: "worker", description: "one", prompt: "WORK", origin: "program" } as const;
    const ask = () =>
      session.agentHost.askBeforeStart?.([request, request], {
        signal: new AbortController().signal,
        what: "the workflow release",
      });
    expect(await ask()).toMatchObject({
      type: "allowed",
      requests: [{ quote: { basis: { from: "estimate" } } }, { quote: {} }],
      quote: { agents: [{}, {}] },
    });
    expect(await ask()).toMatchObject({
      type: "refused",
      reason: expect.stringContaining("None of these 2 agents"),
    });
    expect(reasons[0]).toMatch(/^the workflow release: 2 agents would start/);
  });
});

describe("quotes of agents that run again and again", () => {
  /** Runs of one definition, each of another length, with what was quoted before each. */
  test("rest on the recorded runs, and at least 16 of 20 take what was quoted [BIL-1, BIL-3]", async () => {
    const lengths = [5, 4, 6, 3, 5, 9, 4, 7, 5, 3, 6, 12, 4, 5, 8, 5, 4, 6, 2, 7, 5];
    const sample = await openSample([], { settings: { quotes: {} } });
    const work = [{ agentType: "worker", prompt: "WORK" }];
    for (const [at, length] of lengths.entries()) {
      const { runtime } = sample.restart(runOf(length));
      await using session = await runtime.open();
      const { quote, totals } = await session.spawn("worker", "WORK").result;
      expect(totals.costUsd).toBeGreaterThan(0);
      expect(quote?.basis).toMatchObject(at === 0 ? { from: "estimate" } : { from: "history", runs: at });
    }
    await using session = await sample.restart([]).runtime.open();
    const { agents: quoted } = await session.quote(work);
    const { basis } = quoted[0] ?? {};
    expect(basis).toMatchObject({ from: "history", runs: 21, coverage: { of: 20 } });
    expect(basis?.from === "history" && basis.coverage?.inside).toBeGreaterThanOrEqual(16);
    expect((await session.quote([{ agentType: "reader", prompt: "READ" }])).agents[0]?.basis.from).toBe(
      "estimate",
    );
  });

  test("are shown beside what each took: in the result, the journal and the parent's data [BIL-3]", async () => {
    const sample = await openSample(
      [{ match: says("WORK"), text: "Piece done." }, { calls: [call("WORK one")] }, { text: "Answered." }],
      { settings: { quotes: {} } },
    );
    await using session = await sample.runtime.open();
    const events = [];
    const run = session.run("Begin.");
    for await (const event of run.events) events.push(event);
    await run.result;
    const quote = { tokens: { low: expect.any(Number) }, basis: { from: "estimate" } };
    expect(events).toContainEqual(
      expect.objectContaining({
        type: "run-ended",
        agentType: "worker",
        ending: expect.objectContaining({ quote: expect.objectContaining({ basis: { from: "estimate" } }) }),
      }),
    );
    const lines = linesOf(sample, session.id);
    expect(lines.find(({ type }) => type === "retinue-plan")).toMatchObject({ plan: { quote } });
    expect(lines.find(({ subtype }) => subtype === "turn_duration")).toMatchObject({ runEnding: { quote } });
    const results: unknown[] = events.flatMap((event): unknown[] =>
      event.type === "user-added" ? Object.values(event.results ?? {}) : [],
    );
    expect(results).toMatchObject([{ agentType: "worker", quote }]);
  });

  test("are not made where settings do not ask for them [BIL-2]", async () => {
    const sample = await openSample([{ match: says("WORK"), text: "Piece done." }]);
    await using session = await sample.runtime.open();
    expect(await session.spawn("worker", "WORK").result).not.toHaveProperty("quote");
    expect(JSON.stringify(linesOf(sample, session.id))).not.toContain('"quote"');
  });

  test("refuse what they cannot quote, and what is no request, with a sentence [BIL-1]", async () => {
    const sample = await openSample([]);
    await using session = await sample.runtime.open();
    const {
      agents: quoted,
      refused,
      total,
    } = await session.quote([
      { agentType: "wroker", prompt: "WORK" },
      { agentType: "worker", prompt: "WORK" },
      { agentType: "worker", prompt: "WORK" },
    ]);
    expect(refused).toEqual([
      { agentType: "wroker", reason: expect.stringContaining("Did you mean worker?") },
    ]);
    expect(quoted).toHaveLength(2);
    expect(total.costUsd?.high).toBeCloseTo(2 * (quoted[0]?.costUsd?.high ?? 0), 9);
    expect(total.durationMs).toEqual(quoted[0]?.durationMs);
    for (const wrong of [
      [{ agentType: "worker" }],
      "worker",
      [{ agentType: "worker", prompt: "x", turns: 3 }],
    ])
      await expect(session.quote(wrong as never)).rejects.toMatchObject({
        code: expect.stringMatching(/invalid|unknown/),
      });
  });
});

describe("quotes at the command line", () => {
  /** Commands in a place of their own; the scripts of `-p` begin with a batch of two agents. */
  async function createStage() {
    const script: Step[] = Array.from({ length: 4 }, () => [
      { match: isPrompted, calls: [call("WORK one"), call("WORK two")] },
      { match: (request: ModelRequest) => !isPrompted(request), text: "Answered." },
    ]).flat();
    const provider = await startFakeProvider({
      script: [{ match: says("WORK"), text: "Piece done.", times: "any" }, ...script],
    });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const place = createPlace();
    place.write(
      ".claude/agents/worker.md",
      "---\nname: worker\ndescription: Works.\ntools: Read, Edit\n---\nYou work.\n",
    );
    place.write(".claude/settings.json", JSON.stringify({ quotes: { askAboveAgents: 1 } }));
    const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
    const retinue = (...words: readonly string[]) => runInProcess(place, words, { environment });
    return { retinue, provider, place, environment };
  }

  test("wait in the inbox where questions wait there; a yes starts all agents, and plan and inspect show what they took [BIL-1, BIL-2, BIL-3]", async () => {
    const { retinue } = await createStage();
    const before = await retinue("plan", "worker", "--cost", "--json");
    expect(JSON.parse(before.out).quote.agents).toMatchObject([
      { agentType: "worker", basis: { from: "estimate" } },
    ]);

    const running = retinue("-p", "Go.", "--approvals", "wait", "--output-format", "json");
    const waiting = async () => JSON.parse((await retinue("approvals", "--json")).out).approvals;
    await expect.poll(async () => (await waiting()).length, { timeout: 30_000 }).toBe(1);
    const [{ question }] = await waiting();
    expect(question).toMatchObject({
      tool: "Agent",
      everyTime: true,
      suggestedRules: [],
      quote: { agents: [{}, {}] },
    });
    expect((await retinue("approvals")).out).toContain("start 2 agents: likely $");
    expect((await retinue("approvals", "show", question.id)).out).toMatch(
      /2 agents, together likely.*may write: worker: Edit/s,
    );
    expect((await retinue("approve", question.id)).code).toBe(0);
    const result = JSON.parse((await running).out);
    expect(result).toMatchObject({ result: "Answered.", permission_denials: [] });

    const after = await retinue("plan", "worker", "--cost");
    expect(after.out).toMatch(/cost +<?\$[^\n]*\n?[^\n]*from 2 runs on this machine/);
    expect(after.out).toMatch(/may write +Edit\nmay run +nothing\nmay reach +nothing\n/);
    const inspected = await retinue("inspect", result.session_id);
    expect(inspected.out).toMatch(/QUOTED AND REAL.*of 2 inside the quoted range.*quoted \$/s);
    const { agents: all, quotes } = JSON.parse((await retinue("inspect", result.session_id, "--json")).out);
    expect(quotes).toMatchObject({ of: 2 });
    expect(all[1]).toMatchObject({
      quote: { basis: { from: "estimate" }, real: { tokens: expect.any(Number) } },
    });
  });

  test("an answer that came after the process had died counts when the session is resumed [BIL-2]", async () => {
    const { retinue, place, environment } = await createStage();
    const session = "0a1b2c3d-0000-4000-8000-000000000000";
    const flags = ["--approvals", "wait", "--output-format", "json"];
    const waiting = async () => {
      const { approvals } = JSON.parse((await retinue("approvals", "--json")).out);
      return approvals.filter(({ state }: { readonly state: string }) => state === "waiting");
    };
    const asked = Promise.withResolvers<string>();
    const killed = runCommand(place, ["-p", "Go.", "--session-id", session, ...flags], {
      environment,
      started: (child) =>
        void expect
          .poll(async () => (await waiting()).length, { timeout: 60_000 })
          .toBe(1)
          .then(async () => {
            const [{ question }] = await waiting();
            child.kill("SIGKILL");
            asked.resolve(question.id);
          }, asked.reject),
    });
    const id = await asked.promise;
    await killed;
    expect((await retinue("approve", id)).code).toBe(0);
    const { out } = await retinue("-p", "Go on.", "--resume", session, ...flags);
    expect(JSON.parse(out)).toMatchObject({ result: "Answered.", permission_denials: [] });
    expect(await waiting()).toEqual([]);
    const { quotes } = JSON.parse((await retinue("inspect", session, "--json")).out);
    expect(quotes).toMatchObject({ of: 2 });
  });

  test("are refused where no person is there and nothing waits, and a no starts none [BIL-2]", async () => {
    const { retinue, provider } = await createStage();
    const { out } = await retinue("-p", "Go.", "--output-format", "json");
    expect(JSON.parse(out)).toMatchObject({ result: "Answered.", permission_denials: [{}, {}] });
    expect((await retinue("-p", "Go.")).err).toBe(
      "2 agents were not started: settings ask above 1 agent (quotes.askAboveAgents). Raise that, or let the question wait: --approvals wait.\n",
    );
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("and no one can be asked here");

    const running = retinue("-p", "Go.", "--approvals", "wait", "--output-format", "json");
    const waiting = async () => JSON.parse((await retinue("approvals", "--json")).out).approvals;
    await expect.poll(async () => (await waiting()).length, { timeout: 30_000 }).toBe(1);
    const [{ question }] = await waiting();
    expect((await retinue("deny", question.id, "not", "today")).code).toBe(0);
    expect(JSON.parse((await running).out)).toMatchObject({ permission_denials: [{}, {}] });
    expect(JSON.stringify(provider.requests.at(-1)?.body).match(/not today/g)).toHaveLength(2);
    expect(provider.requests.some(({ body }) => JSON.stringify(body).includes("You work."))).toBe(false);
  });

  test("are at the price of the model that is planned, also where there is no key for it [BIL-1]", async () => {
    const place = createPlace();
    place.write(".claude/agents/worker.md", "---\nname: worker\ndescription: Works.\n---\nYou work.\n");
    const costOf = async (environment: Readonly<Record<string, string>>) => {
      const words = ["plan", "worker", "--cost", "--json", "--model", "claude-sonnet-5"];
      const run = await runInProcess(place, words, {
        environment: { RETINUE_LOCAL_MODELS: "0", ...environment },
      });
      return JSON.parse(run.out).quote.total.costUsd;
    };
    const keyed = await costOf({ ANTHROPIC_API_KEY: "x" });
    expect(keyed.low).toBeGreaterThan(0);
    expect(await costOf({})).toEqual(keyed);
  });

  test("a threshold that cannot be read is an error, and --cost is for one agent [BIL-2]", async () => {
    const place = createPlace();
    place.write(".claude/settings.json", JSON.stringify({ quotes: { askAboveUsd: "two" } }));
    const run = await runInProcess(place, ["-p", "Go."]);
    expect(run.code).not.toBe(0);
    expect(run.err).toContain('"quotes.askAboveUsd" cannot be read: it is not a number from 0');
    expect(await runInProcess(place, ["plan", "--tree", "--cost"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--cost is for one agent"),
    });
  });
});

/** The last message is what a person wrote, and no result of a call. */
function isPrompted({ messages }: ModelRequest): boolean {
  return (
    !JSON.stringify(messages.at(-1)).includes("tool_result") ||
    JSON.stringify(messages.at(-1)).includes("Go on.")
  );
}

/** One child that reads so many times, with a conversation that grows. */
function runOf(length: number): readonly Step[] {
  const reading = Array.from({ length: length - 1 }, (_, turn) => ({
    calls: [{ name: "Read", input: { file_path: `missing-${turn}` } }],
    usage: usage(4_000 + 900 * turn),
  }));
  return [...reading, { text: "Done.", usage: usage(4_000 + 900 * length) }];
}

/** The lines of the first child of a session. */
function linesOf({ home }: SampleRuntime, sessionId: string): readonly Record<string, unknown>[] {
  const names = readdirSync(home, { recursive: true }).map(String);
  const file = names.find((name) => name.includes(sessionId) && /agent-[^/]*\.jsonl$/.test(name));
  const lines = readFileSync(join(home, file ?? ""), "utf8")
    .trim()
    .split("\n");
  return lines.map((line) => JSON.parse(line));
}

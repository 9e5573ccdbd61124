import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { estimateRequestTokens } from "@retinue/core/conversation/estimate-request-tokens.ts";
import { type Message, textOf } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { type FakeProviderOptions, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer, StepFunction } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, readJsonLines, runCommand } from "./run-command.ts";

const small = 30_000;

/** The main agent's model has a window of 60,000 tokens, the one that children may ask for of 30,000. */
const modelOverrides = {
  "claude-sonnet-5": { contextWindow: 60_000, maxOutputTokens: 8_000 },
  "claude-haiku-5-5": { contextWindow: small, maxOutputTokens: 4_000 },
};

interface StageOptions {
  readonly settings?: object;
  readonly environment?: Readonly<Record<string, string>>;
  readonly runtime?: RuntimeOptions;
  readonly provider?: FakeProviderOptions;
}

/** A runtime whose models are served over HTTP by a provider that refuses what the real one would refuse. */
async function createStage(respond: StepFunction, options: StageOptions = {}) {
  const provider = await startFakeProvider({ respond, ...options.provider });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const settings = { modelOverrides, ...options.settings };
  place.write("../home/.claude/settings.json", JSON.stringify(settings));
  place.write("long.txt", `${"Some words in a line of a file.\n".repeat(150)}`);
  const environment = {
    PATH: process.env["PATH"],
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    ...options.environment,
  };
  const start = () => {
    const runtime = createRuntime({
      cwd: place.cwd,
      home: place.home,
      settingSources: ["user", "project", "local"],
      transcripts: true,
      env: environment,
      managedDirectory: join(place.home, "managed"),
      ...options.runtime,
    });
    onTestFinished(() => runtime[Symbol.asyncDispose]());
    return runtime;
  };
  const asked = (): readonly ModelRequest[] => provider.requests.map(({ request }) => request);
  return { place, provider, start, asked, environment, runtime: start() };
}

const isSummaryRequest = ({ messages }: ModelRequest): boolean =>
  JSON.stringify(messages.at(-1)?.content).includes("replaced by a summary that you write now");

const shown = (message: Message | undefined): string => JSON.stringify(message?.content);

/** Reads the same file so many times, however often the conversation is compacted meanwhile. */
function createReader(turns: number, done: string) {
  let count = 0;
  return (request: ModelRequest): StepAnswer => {
    if (isSummaryRequest(request)) return { text: `SUMMARY after ${count} readings.` };
    if (count >= turns) return { text: done };
    count += 1;
    return {
      text: `Reading ${count}.`,
      calls: [{ name: "Read", input: { file_path: "long.txt", limit: 1_000 + count } }],
    };
  };
}

async function collect(events: AsyncIterable<RunEvent>): Promise<readonly RunEvent[]> {
  const all: RunEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const compactionsIn = (events: readonly RunEvent[]) =>
  events.filter((event) => event.type === "context-compacted");

describe("the main agent", () => {
  test("[CMP-1, CMP-2, CMP-3] works on through many compactions, and a restart continues from what it saw last", async () => {
    const reader = createReader(120, "Read often enough.");
    const stage = await createStage(reader, { provider: { contextWindow: 60_000 } });
    const session = await stage.runtime.open({});
    const handle = session.prompt("THE TASK: read it often.");
    const watching = collect(handle.events);
    expect(await handle.result).toMatchObject({ status: "completed", text: "Read often enough." });
    const compactions = compactionsIn(await watching);
    expect(compactions.length).toBeGreaterThan(1);
    for (const { request, status } of stage.provider.requests) {
      expect(status).toBe("answered");
      expect(estimateRequestTokens(request)).toBeLessThan(60_000);
      expect(shown(request.messages[0])).toContain("THE TASK: read it often.");
    }
    for (const { request, usage } of stage.provider.requests.filter((one) => isSummaryRequest(one.request)))
      expect(usage?.cacheReadTokens).toBeGreaterThan(0.9 * estimateRequestTokens(request));
    const before = session.messages();
    await session[Symbol.asyncDispose]();
    const [lines] = [...stage.place.transcripts().values()];
    const boundaries = lines?.filter(({ subtype }) => subtype === "compact_boundary") ?? [];
    expect(boundaries).toHaveLength(compactions.length);
    expect(boundaries[0]).toMatchObject({
      type: "system",
      subtype: "compact_boundary",
      parentUuid: null,
      compactMetadata: { trigger: "auto", preTokens: expect.any(Number) },
    });
    await using again = await stage.start().open({ continue: true });
    expect(again.messages()).toEqual(before);
    const count = stage.asked().length;
    await again.prompt("And now?").result;
    expect(stage.asked()[count]?.messages.slice(0, before.length)).toEqual(before);
  });

  test("[CMP-4] a provider with a smaller window than was thought is answered by a compaction", async () => {
    const stage = await createStage(createReader(30, "Done."), { provider: { contextWindow: 40_000 } });
    const events = await collect((await stage.runtime.open({})).stream("Go.", new AbortController().signal));
    expect(events.at(-1)).toMatchObject({ ending: { status: "completed", text: "Done." } });
    expect(compactionsIn(events).length).toBeGreaterThan(0);
    expect(stage.provider.requests.filter(({ status }) => status === "failed").length).toBeGreaterThan(0);
  });

  test.each([
    [{ CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "50" }, {}, 30_000],
    [{}, { autoCompactWindow: 32_000 }, 30_400],
  ])("[CMP-1] %o and %o set the threshold", async (environment, settings, expected) => {
    const stage = await createStage(createReader(30, "Done."), { environment, settings });
    const events = await collect((await stage.runtime.open({})).stream("Go.", new AbortController().signal));
    const [first] = compactionsIn(events);
    expect(first?.preTokens).toBeGreaterThanOrEqual(expected);
    expect(first?.preTokens).toBeLessThan(expected + 4_000);
  });

  test.each([
    [{ DISABLE_AUTO_COMPACT: "1" }, {}],
    [{ DISABLE_COMPACT: "1" }, {}],
    [{}, { autoCompactEnabled: false }],
  ])("%o and %o switch it off", async (environment, settings) => {
    const stage = await createStage(createReader(60, "Done."), { environment, settings });
    const events = await collect((await stage.runtime.open({})).stream("Go.", new AbortController().signal));
    expect(compactionsIn(events)).toEqual([]);
    expect(events.at(-1)).toMatchObject({ ending: { status: "completed" } });
  });

  test("running agents and the list of steps are stated again in the summary", async () => {
    const todos = [{ content: "Paint the fence", status: "pending", activeForm: "Painting the fence" }];
    const gate = Promise.withResolvers<void>();
    let turn = 0;
    const stage = await createStage(async (request) => {
      if (isSummaryRequest(request)) return { text: "SUMMARY" };
      if (shown(request.messages[0]).includes("CHILD TASK")) {
        await gate.promise;
        return { text: "Child done." };
      }
      turn += 1;
      if (turn === 1) return { calls: [{ name: "TodoWrite", input: { todos } }] };
      return { text: `Turn ${turn}. ${"Many words. ".repeat(200)}` };
    });
    await using session = await stage.runtime.open({});
    for (const prompt of ["First.", "Second.", "Third."]) await session.prompt(prompt).result;
    const child = session.spawn("general-purpose", "CHILD TASK", {
      description: "watch the sky",
      background: true,
    });
    await child.started;
    const { id } = child;
    expect(await session.compact().result).toMatchObject({ status: "completed", reason: "compacted" });
    gate.resolve();
    await child.result;
    const [first] = session.messages();
    for (const text of ["SUMMARY", "[pending] Paint the fence", id, "watch the sky"])
      expect(shown(first)).toContain(text);
  });

  test("[LIM-4] what the summary took counts for the run and is in the transcript", async () => {
    const stage = await createStage(createReader(30, "Done."), {
      environment: { CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "50" },
    });
    const session = await stage.runtime.open({});
    const handle = session.prompt("Go.");
    const watching = collect(handle.events);
    const { totals } = await handle.result;
    const answers = (await watching).flatMap((event) =>
      event.type === "assistant-answered" || event.type === "context-compacted" ? [event.usage] : [],
    );
    expect(totals.usage.outputTokens).toBe(answers.reduce((sum, { outputTokens }) => sum + outputTokens, 0));
    await session[Symbol.asyncDispose]();
    const [lines] = [...stage.place.transcripts().values()];
    expect(lines?.find(({ subtype }) => subtype === "compact_boundary")).toMatchObject({
      compactMetadata: { summarizer: { by: "model", costUSD: expect.any(Number) } },
    });
  });
});

test("[LIM-3] what a summary costs counts for the budget of the session", async () => {
  const reader = createReader(60, "Done.");
  const stage = await createStage((request) =>
    isSummaryRequest(request) ? { text: "SUMMARY", usage: { outputTokens: 900_000 } } : reader(request),
  );
  await using session = await stage.runtime.open({ maxBudgetUsd: 5 });
  const result = await session.prompt("Go.").result;
  expect(result).toMatchObject({ status: "partial", reason: "max_budget" });
  expect(stage.asked().filter(isSummaryRequest)).toHaveLength(1);
  expect(isSummaryRequest(stage.asked().at(-1) as ModelRequest)).toBe(true);
});

describe("a child", () => {
  test("[CMP-1, CMP-2] compacts by the window of its own model, in its own transcript", async () => {
    const reader = createReader(25, "Read it.");
    let turn = 0;
    const stage = await createStage((request) => {
      if (shown(request.messages[0]).includes("CHILD TASK")) return reader(request);
      turn += 1;
      const input = { description: "read", prompt: "CHILD TASK: read it often.", model: "haiku" };
      return turn === 1 ? { calls: [{ name: "Agent", input }] } : { text: "It was read." };
    });
    const pendingMessages: RunEvent[] = [];
    await using session = await stage.runtime.open({});
    const feed = session.tasks.watch();
    const watching = (async () => {
      for await (const { event, state } of feed) {
        pendingMessages.push(event);
        if (event.type === "compaction-started") expect(state.activity).toBe("compacting");
      }
    })();
    const handle = session.prompt("Go.");
    const main = collect(handle.events);
    expect(await handle.result).toMatchObject({ status: "completed", text: "It was read." });
    expect(compactionsIn((await main).filter((event) => Reflect.get(event, "agentId") === "main"))).toEqual(
      [],
    );
    const [child] = session.tasks.list();
    const compactions = compactionsIn(pendingMessages);
    expect(compactions.length).toBeGreaterThan(0);
    for (const { preTokens } of compactions) {
      expect(preTokens).toBeGreaterThanOrEqual(small * 0.95);
      expect(preTokens).toBeLessThan(small * 1.2);
    }
    const usage = child?.ending?.totals.usage;
    expect(child?.usage).toEqual(usage);
    await feed.return?.();
    await watching;
    const own = childTranscript(stage.place.home, child?.id ?? "");
    const lines = readJsonLines(own.text);
    expect(lines.filter(({ subtype }) => subtype === "compact_boundary")).toHaveLength(compactions.length);
    expect(lines.every(({ isSidechain }) => isSidechain === true)).toBe(true);
    const [mainLines] = [...stage.place.transcripts().values()];
    expect(mainLines?.some(({ subtype }) => subtype === "compact_boundary")).toBe(false);
  });

  test("[TRN-3] that was compacted is resumed with the summary and the turns it kept", async () => {
    const reader = createReader(25, "Read it.");
    const stage = await createStage(reader, { settings: { model: "haiku" } });
    await using session = await stage.runtime.open({});
    const first = session.spawn("general-purpose", "CHILD TASK: read it often.");
    expect((await first.result).status).toBe("completed");
    const before = stage.asked().at(-1)?.messages ?? [];
    expect(shown(before[0])).toContain("conversation-summary");
    const count = stage.asked().length;
    await session.spawn("general-purpose", "And now?", { resume: first.id }).result;
    expect(stage.asked()[count]?.messages.slice(0, before.length)).toEqual(before);
  });

  test("[TRN-5] the compaction of the main conversation changes no byte of its transcript", async () => {
    let turn = 0;
    const stage = await createStage((request) => {
      if (isSummaryRequest(request)) return { text: "SUMMARY" };
      if (shown(request.messages[0]).includes("CHILD TASK")) return { text: "Child done." };
      turn += 1;
      const input = { description: "look", prompt: "CHILD TASK" };
      if (turn === 1) return { calls: [{ name: "Agent", input }] };
      return { text: "Many words. ".repeat(300) };
    });
    await using session = await stage.runtime.open({});
    await session.prompt("Go.").result;
    await session.prompt("More.").result;
    const [child] = session.tasks.list();
    const before = childTranscript(stage.place.home, child?.id ?? "");
    expect(before.text).not.toBe("");
    expect(await session.compact("Keep the names.").result).toMatchObject({ reason: "compacted" });
    expect(childTranscript(stage.place.home, child?.id ?? "")).toEqual(before);
  });
});

function childTranscript(home: string, id: string): { readonly text: string; readonly files: number } {
  const projects = join(home, ".claude/projects");
  const files = readdirSync(projects, { recursive: true }).map(String);
  const own = files.find((name) => name.endsWith(`agent-${id}.jsonl`)) ?? "";
  return { text: readFileSync(join(projects, own), "utf8"), files: files.length };
}

describe("hooks", () => {
  const command = (text: string) => ({ hooks: [{ type: "command", command: text }] });

  test("[HKS-1] PreCompact adds instructions by what it prints, PostCompact receives the summary, SessionStart adds context", async () => {
    const hooks = {
      PreCompact: [
        { matcher: "manual", ...command("cat > pre.json; echo Name the colours.") },
        { matcher: "auto", ...command("touch never") },
      ],
      PostCompact: [command("cat > post.json")],
      SessionStart: [{ matcher: "compact", ...command("echo The build is red.") }],
    };
    const stage = await createStage(
      (request) => (isSummaryRequest(request) ? { text: "SUMMARY" } : { text: "Words. ".repeat(400) }),
      { settings: { hooks } },
    );
    await using session = await stage.runtime.open({});
    for (const prompt of ["First.", "Second.", "Third."]) await session.prompt(prompt).result;
    expect(await session.compact("Be short.").result).toMatchObject({ reason: "compacted" });
    const read = (name: string) => JSON.parse(readFileSync(join(stage.place.cwd, name), "utf8"));
    expect(read("pre.json")).toMatchObject({
      hook_event_name: "PreCompact",
      trigger: "manual",
      custom_instructions: "Be short.",
    });
    expect(read("post.json")).toMatchObject({
      hook_event_name: "PostCompact",
      trigger: "manual",
      compact_summary: expect.stringContaining("SUMMARY"),
    });
    expect(readdirSync(stage.place.cwd)).not.toContain("never");
    const asked = stage.asked().find(isSummaryRequest);
    expect(shown(asked?.messages.at(-1))).toContain("Be short.");
    expect(shown(asked?.messages.at(-1))).toContain("Name the colours.");
    expect(session.messages().map(textOf).join()).toContain("The build is red.");
  });

  test("[HKS-1] PreCompact of a child says which agent it is, and exit 2 holds the compaction up", async () => {
    const reader = createReader(25, "Read it.");
    const hooks = { PreCompact: [command("cat > pre.json; echo not now >&2; exit 2")] };
    const stage = await createStage(reader, { settings: { hooks, model: "haiku" } });
    await using session = await stage.runtime.open({});
    const child = session.spawn("general-purpose", "CHILD TASK");
    expect((await child.result).status).toBe("completed");
    expect(stage.asked().some(isSummaryRequest)).toBe(false);
    expect(JSON.parse(readFileSync(join(stage.place.cwd, "pre.json"), "utf8"))).toMatchObject({
      trigger: "auto",
      custom_instructions: null,
      agent_id: child.id,
      agent_type: "general-purpose",
    });
    expect(await session.compact().result).toMatchObject({ reason: "nothing_to_compact" });
  });
});

describe("asked for by a person", () => {
  test("`/compact …` as the prompt of a resumed session compacts it, and the stream shows the boundary", async () => {
    const stage = await createStage((request) =>
      isSummaryRequest(request) ? { text: "SUMMARY" } : { text: "Words. ".repeat(400) },
    );
    const session = await stage.runtime.open({});
    for (const prompt of ["First.", "Second.", "Third."]) await session.prompt(prompt).result;
    await session[Symbol.asyncDispose]();
    const { PATH: _path, ...environment } = stage.environment;
    const arguments_ = ["-p", "/compact keep the names", "--continue", "--output-format", "stream-json"];
    const { code, out, err } = await runCommand(stage.place, [...arguments_, "--verbose"], { environment });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const messages = readJsonLines(out);
    expect(messages).toContainEqual(
      expect.objectContaining({
        type: "system",
        subtype: "compact_boundary",
        compact_metadata: expect.objectContaining({ trigger: "manual", pre_tokens: expect.any(Number) }),
      }),
    );
    expect(messages.at(-1)).toMatchObject({
      type: "result",
      subtype: "success",
      num_turns: 0,
      local_command: "compact",
    });
    expect(shown(stage.asked().at(-1)?.messages.at(-1))).toContain("keep the names");
    await using again = await stage.start().open({ continue: true });
    expect(shown(again.messages()[0])).toContain("SUMMARY");
    expect(shown(again.messages()[0])).toContain("First.");
  });

  test("a session that works on a prompt cannot be compacted at the same time", async () => {
    const gate = Promise.withResolvers<void>();
    const stage = await createStage(async () => {
      await gate.promise;
      return { text: "Done." };
    });
    await using session = await stage.runtime.open({});
    const handle = session.prompt("Go.");
    await expect(session.compact().result).rejects.toMatchObject({ code: "session-busy" });
    gate.resolve();
    await handle.result;
  });

  test("a hook that holds it up is named in the failure", async () => {
    const hooks = { PreCompact: [{ hooks: [{ type: "command", command: "echo not now >&2; exit 2" }] }] };
    const stage = await createStage(() => ({ text: "Words. ".repeat(400) }), { settings: { hooks } });
    await using session = await stage.runtime.open({});
    for (const prompt of ["First.", "Second.", "Third."]) await session.prompt(prompt).result;
    expect(await session.compact().result).toMatchObject({
      status: "failed",
      reason: "compact_blocked",
      error: expect.stringContaining("not now"),
    });
  });
});

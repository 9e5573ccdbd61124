import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { textOf } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { ModelRequest } from "../models/model.ts";
import { createRuntime } from "./create-runtime.ts";

const hour = 3_600_000;

/** Hours pass as soon as all agents wait for them. */
function createQuickClock(): WaitClock {
  let time = 0;
  return {
    now: () => time,
    async sleep(milliseconds, signal) {
      const until = time + milliseconds;
      await new Promise<void>((resolve) => setTimeout(resolve, 1));
      signal.throwIfAborted();
      time = Math.max(time, until);
    },
  };
}

const isHandingIn = (request: ModelRequest): boolean => lastText(request).includes("Hand in what you have");
const lastText = ({ messages }: ModelRequest): string => {
  const last = messages.at(-1);
  return last === undefined ? "" : textOf(last);
};
const callsIn = ({ messages }: ModelRequest): number =>
  messages.filter(
    ({ role, content }) =>
      role === "assistant" && typeof content !== "string" && content.some(({ type }) => type === "tool_use"),
  ).length;

/** A main agent that starts three children, each of which reads as many files. */
function workOf(reads: number) {
  return (request: ModelRequest): StepAnswer => {
    const isChild = request.system.join("").includes("You are a reader");
    if (isHandingIn(request)) return { text: `State: ${callsIn(request)} files read.` };
    const done = callsIn(request);
    if (!isChild && done === 0)
      return {
        calls: [1, 2, 3].map((number) => ({
          name: "Agent",
          input: { description: `reader ${number}`, prompt: `Read ${number}.`, subagent_type: "reader" },
        })),
      };
    if (!isChild || done >= reads) return { text: isChild ? "All files are read." : "Done." };
    return { calls: [{ name: "Read", input: { file_path: `file-${done}.txt` } }] };
  };
}

async function openPlace(options: {
  readonly provider: FakeProvider;
  readonly clock: WaitClock;
  readonly quota?: object;
  readonly limits?: object;
}) {
  const workspace = await createWorkspace();
  for (let number = 0; number < 25; number += 1) await workspace.write(`file-${number}.txt`, "text");
  const home = join(workspace.root, "home");
  const start = (environment: object = {}) =>
    createRuntime({
      cwd: workspace.project,
      home,
      env: {
        PATH: process.env["PATH"],
        ANTHROPIC_BASE_URL: options.provider.url,
        ANTHROPIC_API_KEY: "key-of-a-test",
        RETINUE_LOCAL_MODELS: "0",
        ...environment,
      },
      managedDirectory: join(workspace.root, "managed"),
      transcripts: true,
      clock: options.clock,
      model: "claude-sonnet-4-5",
      settings: {
        ...(options.quota === undefined ? {} : { quota: options.quota }),
        ...(options.limits === undefined ? {} : { limits: options.limits }),
      },
      agents: [{ name: "reader", description: "Reads.", prompt: "You are a reader.", tools: ["Read"] }],
    } as Parameters<typeof createRuntime>[0]);
  return { workspace, home, start };
}

async function collect(events: AsyncIterable<RunEvent>): Promise<readonly RunEvent[]> {
  const all: RunEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe("a quota that is used up [LIM-7]", () => {
  test("all agents hand in their state, wait for the next window, and finish; nothing is repeated", async () => {
    const clock = createQuickClock();
    await using provider = await startFakeProvider({
      respond: workOf(8),
      quota: { requests: 20, everyMs: 5 * hour },
      now: clock.now,
    });
    const { workspace, home, start } = await openPlace({ provider, clock, quota: { wait: true } });
    await using _workspace = workspace;
    await using runtime = start();
    await using session = await runtime.open();
    const events = await collect(session.stream("Read all.", new AbortController().signal));
    const ending = events.at(-1);
    expect(ending).toMatchObject({ type: "run-ended", ending: { status: "completed", text: "Done." } });
    const children = session.tasks.list();
    expect(children.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    expect(children.map(({ toolUses }) => toolUses)).toEqual([8, 8, 8]);
    // A window of five hours has twenty requests; more than twice as many were made.
    expect(provider.requests.length).toBeGreaterThan(28);
    const refused = provider.requests.filter(({ status }) => status === "failed").length;
    expect(refused).toBeLessThanOrEqual(Math.ceil(provider.requests.length / 20));
    const files = readdirSync(join(home, ".claude", "quota"));
    expect(files.filter((name) => name.endsWith(".json"))).toHaveLength(1);
    expect(readFileSync(join(home, ".claude", "quota", files[0] ?? ""), "utf8")).not.toContain(
      "key-of-a-test",
    );
  });

  test("one agent hands in its state with the last turn, and meets no refusal", async () => {
    const clock = createQuickClock();
    await using provider = await startFakeProvider({
      respond: (request) => workOf(25)({ ...request, system: ["You are a reader"] }),
      quota: { requests: 20, everyMs: 5 * hour },
      now: clock.now,
    });
    const { workspace, start } = await openPlace({ provider, clock, quota: { wait: true } });
    await using _workspace = workspace;
    await using runtime = start();
    await using session = await runtime.open();
    const events = await collect(session.stream("Read all.", new AbortController().signal));
    expect(events.at(-1)).toMatchObject({ ending: { status: "completed", text: "All files are read." } });
    expect(provider.requests.map(({ status }) => status)).not.toContain("failed");
    const handedIn = provider.requests.filter(({ request }) => isHandingIn(request));
    expect(handedIn.map(({ body }) => body["tool_choice"])).toEqual([{ type: "none" }]);
    const types = events.flatMap(({ type }) => (type.startsWith("quota-") ? [type] : []));
    expect(types).toEqual(["quota-waiting", "quota-renewed"]);
  });

  test("without the setting nothing waits and nothing is written", async () => {
    const clock = createQuickClock();
    await using provider = await startFakeProvider({
      respond: () => "Done.",
      quota: { requests: 1, everyMs: 5 * hour },
      now: clock.now,
    });
    const { workspace, home, start } = await openPlace({ provider, clock });
    await using _workspace = workspace;
    await using runtime = start();
    expect(await runtime.run("First.").result).toMatchObject({ status: "completed" });
    const before = clock.now();
    expect(await runtime.run("Second.").result).toMatchObject({ status: "failed", reason: "rate-limited" });
    expect(clock.now() - before).toBeLessThan(hour);
    expect(readdirSync(join(home, ".claude"))).not.toContain("quota");
  });

  test("what is spent unattended has a ceiling, until there is another prompt", async () => {
    const clock = createQuickClock();
    await using provider = await startFakeProvider({
      respond: (request) =>
        callsIn(request) >= 8 ? "Done." : workOf(8)({ ...request, system: ["You are a reader"] }),
      quota: { requests: 4, everyMs: 5 * hour },
      now: clock.now,
    });
    const quota = { wait: true, maxUsdUnattended: 0.000_001 };
    const { workspace, start } = await openPlace({ provider, clock, quota });
    await using _workspace = workspace;
    await using runtime = start();
    await using session = await runtime.open();
    const { signal } = new AbortController();
    const first = (await collect(session.stream("Go.", signal))).at(-1);
    expect(first).toMatchObject({ ending: { status: "partial", reason: "max_budget" } });
    expect(JSON.stringify(first)).toContain("quota.maxUsdUnattended");
    const made = provider.requests.length;
    await collect(session.stream("Continue.", signal));
    expect(provider.requests.length).toBeGreaterThan(made);
  });

  test("the ceiling is one for all processes of a key, also for a session whose process has ended, and a prompt of an agent's command lifts nothing", async () => {
    const clock = createQuickClock();
    await using provider = await startFakeProvider({
      respond: (request) =>
        callsIn(request) >= 8 ? "Done." : workOf(8)({ ...request, system: ["You are a reader"] }),
      quota: { requests: 4, everyMs: 5 * hour },
      now: clock.now,
    });
    const quota = { wait: true, maxUsdUnattended: 1000 };
    const { workspace, home, start } = await openPlace({ provider, clock, quota });
    await using _workspace = workspace;
    const file = join(home, ".claude", "quota", "unattended.json");
    const go = async (prompt: string, options: object = {}, environment: object = {}) => {
      await using runtime = start(environment);
      await using session = await runtime.open(options);
      const events = await collect(session.stream(prompt, new AbortController().signal));
      return { ending: events.at(-1), id: session.id };
    };
    const first = await go("Go.");
    expect(first.ending).toMatchObject({ ending: { status: "completed" } });
    // It is closed, and no person was there since.
    const [entry] = JSON.parse(readFileSync(file, "utf8")).entries;
    expect(entry).toMatchObject({ session: first.id });
    expect(entry.usd).toBeGreaterThan(0);
    expect(entry.process).toBeUndefined();
    // Another process of the key has taken all there is, and continues.
    const other = { ...entry, session: "other", usd: 1000, process: thisProcess() };
    const taken = { version: 1, entries: [other], holds: [] };
    writeFileSync(file, JSON.stringify(taken));
    const refused = { ending: { status: "partial", reason: "max_budget" } };
    expect((await go("Go.")).ending).toMatchObject(refused);
    const made = provider.requests.length;
    expect((await go("Go.", {}, { CLAUDECODE: "1" })).ending).toMatchObject({
      ending: { reason: "max_budget" },
    });
    expect(provider.requests.length).toBe(made);
  });
});

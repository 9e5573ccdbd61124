import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";
import { agentLog, readAgentState, toAgentRecord } from "../agent-records.ts";
import { openFileStore } from "../files/open-file-store.ts";
import { serveSessions } from "../serve-sessions.ts";
import { stopAgent, waitForEnd } from "../start-agent.ts";
import { startWorkflow } from "../start-session.ts";
import type { Store, Worker } from "../store.ts";
import { readStoreRun } from "./run-store-workflow.ts";

const meta = "export const meta = { name: 'w', description: 'one' };\n";
const waitMs = 120_000;

const labelOf = (request: ModelRequest): string =>
  /conv:(\w+)/.exec(JSON.stringify(request.messages[0]))?.[1] ?? "?";

/** A store of its own, with a provider that answers by label and counts. */
async function stage(answer: (label: string) => string | StepAnswer | Promise<string | StepAnswer>) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-workflows-")));
  const counts = new Map<string, number>();
  const provider = await startFakeProvider({
    keepsRequests: false,
    async respond(request) {
      const label = labelOf(request);
      counts.set(label, (counts.get(label) ?? 0) + 1);
      return answer(label);
    },
  });
  const store = await openFileStore(join(root, "store"));
  const directory = join(root, "project");
  mkdirSync(directory);
  const workers: Worker[] = [];
  onTestFinished(async () => {
    for (const worker of workers) await worker.drain(0);
    await store.close();
    await provider[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  });
  const env = {
    ...process.env,
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    RETINUE_LOCAL_MODELS: "0",
  };
  const serve = async (runtime = {}): Promise<Worker> => {
    const worker = await serveSessions(store, {
      slots: 4,
      runtime: { home: join(root, "home"), env, ...runtime },
      workspaces: join(root, "workspaces"),
    });
    workers.push(worker);
    return worker;
  };
  const workspace = { type: "pinned", directory, machine: hostname() } as const;
  const start = (script: string, more: Partial<Parameters<typeof startWorkflow>[1]> = {}) =>
    startWorkflow(store, { script: `${meta}${script}`, workspace, ...more });
  const endOf = async (id: string) => {
    const ended = await waitForEnd(store, id, { timeoutMs: waitMs });
    return { status: ended?.status, ...(ended?.result as { output?: unknown; error?: string } | undefined) };
  };
  return { store, counts, serve, start, endOf, directory };
}

/** Whether it holds no worker just now. */
async function isParked({ log }: Store, id: string): Promise<boolean> {
  const [last] = await log.read(agentLog(id), -1);
  return toAgentRecord(last?.record ?? null)?.type === "parked";
}

test("the steps of a workflow are agents of the store, and its script rests while they work [WFL-5, WFL-3]", {
  timeout: waitMs,
}, async () => {
  const special: Readonly<Record<string, StepAnswer>> = {
    typed: { calls: [{ name: "StructuredOutput", input: { n: 7 } }] },
    bad: { failure: "invalid-request" },
  };
  const { store, counts, serve, start, endOf } = await stage((label) => special[label] ?? `R-${label}`);
  await serve();
  const schema = "{ schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } }";
  const id = await start(
    `phase('Work'); log('begins')
    const wide = await parallel(['a', 'b', 'a'].map((name) => () => agent('conv:' + name + ' x')))
    const typed = await agent('conv:typed x', ${schema})
    const last = await agent('conv:last after ' + wide.join(), { label: 'last' })
    return { wide, typed, last, bad: await agent('conv:bad x'), isolated: await agent('conv:i x', { isolation: 'worktree' }).catch((e) => e.message), args }`,
    { args: { who: "Ada" } },
  );
  expect(await endOf(id)).toMatchObject({
    status: "completed",
    output: {
      wide: ["R-a", "R-b", "R-a"],
      typed: { n: 7 },
      last: "R-last",
      bad: null,
      isolated: expect.stringContaining("worktree"),
      args: { who: "Ada" },
    },
  });
  expect(Object.fromEntries(counts)).toEqual({ a: 2, b: 1, typed: 1, last: 1, bad: 1 });
  const history = await store.log.read(agentLog(id));
  const { children } = readAgentState(history);
  expect(children).toHaveLength(6);
  for (const child of children) expect(child).toMatch(new RegExp(`^${id}/wf_[0-9a-f-]+-a[0-9a-f]{16}$`));
  expect(readStoreRun(history)).toMatchObject({
    logs: ["begins", expect.stringContaining("failed")],
    progress: expect.arrayContaining([expect.objectContaining({ label: "last", state: "done" })]),
  });
});

test("a script survives its worker, and nothing that was started is started again [WFL-5, WFL-3]", {
  timeout: waitMs,
}, async () => {
  const gate = Promise.withResolvers<void>();
  const { store, counts, serve, start, endOf } = await stage(async (label) => {
    if (label === "slow") await gate.promise;
    return `R-${label}`;
  });
  const first = await serve();
  const id = await start(
    "const a = await agent('conv:a x'); const [b, c] = await parallel([() => agent('conv:slow x'), () => agent('conv:c x')])\nreturn [a, b, c, await agent('conv:d ' + b)]",
  );
  await becomes(async () => counts.has("slow") && counts.has("c") && (await isParked(store, id)));
  // What it does not finish in time is given back.
  const over = first.drain(0);
  gate.resolve();
  await over;
  // Another worker, with other tools and rules.
  await serve({ disallowedTools: ["WebFetch"] });
  expect(await endOf(id)).toMatchObject({ output: ["R-a", "R-slow", "R-c", "R-d"] });
  expect(readAgentState(await store.log.read(agentLog(id))).children).toHaveLength(4);
  expect([counts.get("a"), counts.get("c"), counts.get("d")]).toEqual([1, 1, 1]);
});

test("a run that failed continues in another one, which takes what is finished [WFL-5, WFL-3]", {
  timeout: waitMs,
}, async () => {
  const { counts, serve, start, endOf } = await stage((label) => `R-${label}`);
  await serve();
  const steps = "const r = [await agent('conv:a x'), await agent('conv:b x')]\n";
  const broken = await start(`${steps}throw new Error('no')`);
  expect(await endOf(broken)).toMatchObject({ status: "failed", error: "Error: no" });
  const second = await start(`await agent('conv:new x')\n${steps}return r`, {
    continues: broken,
  });
  expect(await endOf(second)).toMatchObject({ output: ["R-a", "R-b"] });
  const third = await start(`${steps}return [...r, await agent('conv:new x')]`, { continues: second });
  expect(await endOf(third)).toMatchObject({ output: ["R-a", "R-b", "R-new"] });
  expect(Object.fromEntries(counts)).toEqual({ a: 1, b: 1, new: 1 });
});

test("what the workers of a store cannot keep is refused, and a stopped run stops its steps [WFL-5, WFL-4]", {
  timeout: waitMs,
}, async () => {
  const gate = Promise.withResolvers<void>();
  const { store, counts, serve, start, endOf, directory } = await stage(async (label) => {
    if (label === "slow") await gate.promise;
    return `R-${label}`;
  });
  await serve();
  await expect(start("import x from 'y'")).rejects.toMatchObject({ code: "workflow-broken" });
  await expect(start("return 1", { continues: "nobody" })).rejects.toMatchObject({ code: "unknown-run" });
  const git = { type: "git", repository: "/x", base: "a".repeat(40), branch: "b" } as const;
  await expect(start("return 1", { workspace: git })).rejects.toThrow(/workspace/);
  const limited = await start("", {
    script:
      "export const meta = { name: 'w', description: 'd', phases: [{ title: 'P', maxTokens: 5 }] }\nreturn 1",
  });
  expect(await endOf(limited)).toMatchObject({
    status: "failed",
    error: expect.stringContaining("maxTokens"),
  });
  mkdirSync(join(directory, ".claude"));
  writeFileSync(join(directory, ".claude/settings.json"), JSON.stringify({ disableWorkflows: true }));
  expect(await endOf(await start("return 1"))).toMatchObject({
    error: expect.stringContaining("disabled"),
  });
  rmSync(join(directory, ".claude"), { recursive: true });
  const id = await start("return await agent('conv:slow x')");
  await becomes(() => counts.has("slow"));
  expect(await stopAgent(store, id)).toMatchObject({ status: "stopped" });
  const [child = ""] = readAgentState(await store.log.read(agentLog(id))).children;
  expect(await waitForEnd(store, child, { timeoutMs: waitMs })).toMatchObject({ status: "stopped" });
  gate.resolve();
});

test("the money of a run is one ceiling over all its steps, on whichever worker [WFL-5, WFL-4]", {
  timeout: waitMs,
}, async () => {
  const usage = { inputTokens: 10_000, outputTokens: 1_000 };
  const { counts, serve, start, endOf } = await stage((label) => ({ text: `R-${label}`, usage }));
  await serve();
  const id = await start(
    "const out = []\nfor (let i = 0; i < 6; i += 1) out.push(await agent('conv:s' + i + ' x', { model: 'claude-sonnet-4-5' }).catch((e) => e.message))\nreturn out",
    { options: { maxBudgetUsd: 0.15, model: "claude-sonnet-4-5" } },
  );
  const { status, output } = await endOf(id);
  expect(status).toBe("completed");
  const out = output as string[];
  expect(out.slice(0, 3)).toEqual(["R-s0", "R-s1", "R-s2"]);
  expect(out[5]).toContain("Budget limit reached");
  expect(counts.size).toBe(3);
});

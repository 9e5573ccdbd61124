import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { inspectAgent, startAgent, stopAgent, waitForEnd } from "@retinue/cluster/start-agent.ts";
import type { JsonValue, Store } from "@retinue/cluster/store.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { startBreakableProxy } from "./breakable-proxy.ts";
import { createTestDatabase } from "./test-database.ts";
import { setUpMs } from "./test-postgres.ts";
import { readEffects, type TestPlan } from "./test-program.ts";
import { createFleet, type WorkerProcess } from "./worker-fleet.ts";

const postgres = inject("postgres");

// Each test leaves two workers to the next: starting one is what costs most here. `npm run cluster:figures` has the storm.
describe.skipIf(postgres.missing !== "")(`workers in processes of their own${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const proxy = await startBreakableProxy((await createTestDatabase(postgres, "failover")).url);
  const { url } = proxy;
  const effects = mkdtempSync(join(tmpdir(), "effects-"));
  // `npm run cluster:figures` measures the usual time of 4.5 s.
  const frozenMs = 2_000;
  const fleet = createFleet({ url, effects, slots: 4, codeVersion: "1.0.0", frozenMs });
  let store: Store;
  let workers: [WorkerProcess, WorkerProcess];
  beforeAll(async () => {
    store = await openPostgresStore({ url });
    workers = await Promise.all([fleet.start(), fleet.start()]);
  }, setUpMs);
  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
    await store.close();
    await proxy.cut();
    rmSync(effects, { recursive: true, force: true });
  });

  const effectsOf = (agents: readonly string[]) =>
    readEffects(effects).filter(({ agent }) => agents.includes(agent));

  async function expectDone(agents: readonly string[], steps: number): Promise<void> {
    for (const agent of agents) expect((await ended(agent))?.status).toBe("completed");
    const done = await Promise.all(
      agents.map(async (agent) => (await typesOf(agent)).filter((type) => type === "returned").length),
    );
    expect(done).toEqual(agents.map(() => steps));
    expect(effectsOf(agents)).toHaveLength(agents.length * steps);
  }

  async function typesOf(agent: string): Promise<readonly (string | undefined)[]> {
    return (await store.log.read(agentLog(agent))).map(({ record }) => toAgentRecord(record)?.type);
  }

  test("what a killed worker ran continues elsewhere, nothing lost or repeated, and the parent hears of each child once [CLU-3]", async () => {
    const names = Array.from({ length: 6 }, (_, at) => `child-${at}`);
    const children = names.map((agent) => ({ agent, plan: { steps: 12, stepMs: 15 } }));
    await startAgent(store, { agent: "parent", plan: plan({ children }) });
    for (const kill of [0, 1] as const) {
      const target = Math.min(effectsOf(names).length + 10, names.length * 12);
      await becomes(() => effectsOf(names).length >= target);
      workers[kill].kill("SIGKILL");
      if (kill === 0) workers[kill] = await fleet.start();
    }
    const received = ((await ended("parent"))?.result ?? []) as unknown as readonly {
      readonly agent: string;
    }[];
    expect(received.map(({ agent }) => agent).sort()).toEqual(names);
    await expectDone(names, 12);
    expect(workers[0].errors()).toBe("");
    workers[1] = await fleet.start();
  });

  test("a frozen worker is replaced, and refused at its first write when it thaws [CLU-3]", async () => {
    await startAgent(store, { agent: "slow", plan: plan({ steps: 30, stepMs: 40 }) });
    await becomes(() => effectsOf(["slow"]).length >= 2);
    const owner = effectsOf(["slow"])[0]?.pid;
    const frozen = workers[0].pid === owner ? workers[0] : workers[1];
    frozen.kill("SIGSTOP");
    const seenAt = (await store.engine.workers()).find(({ pid }) => pid === frozen.pid)?.seenAt ?? 0;
    await becomes(() => effectsOf(["slow"]).some(({ pid }) => pid !== owner));
    // Not before its last report was old enough.
    expect(Date.now() - seenAt).toBeGreaterThanOrEqual(frozenMs);
    frozen.kill("SIGCONT");
    const thawedAt = Date.now();
    await expectDone(["slow"], 30);
    // The step whose wait was under way when the process froze may still finish; it has the key of its repetition.
    const late = effectsOf(["slow"]).filter(({ pid, at }) => pid === owner && at > thawedAt);
    expect(late.length).toBeLessThanOrEqual(1);
    // It is a worker again.
    await becomes(async () => (await store.engine.workers()).length === 2);
  });

  test("agents outlast a database that ends all connections and is away for a while [CLU-3]", async () => {
    const agents = ["a", "b", "c", "d"];
    for (const agent of agents) await startAgent(store, { agent, plan: plan({ steps: 20, stepMs: 20 }) });
    await becomes(() => effectsOf(agents).length >= 10);
    await proxy.cut();
    await pause(300);
    await proxy.join();
    await expectDone(agents, 20);
  });

  test("workers that get SIGTERM hand their agents over between two steps, to a newer version [CLU-3]", async () => {
    const agents = ["e", "f"];
    for (const agent of agents) await startAgent(store, { agent, plan: plan({ steps: 60, stepMs: 15 }) });
    await becomes(() => agents.every((agent) => effectsOf([agent]).length >= 2));
    await fleet.start({ codeVersion: "2.0.0" });
    expect(await Promise.all(workers.map((worker) => worker.drain()))).toEqual([0, 0]);
    await expectDone(agents, 60);
    const records = (await store.log.read(agentLog("e"))).map(({ record }) => toAgentRecord(record));
    expect(records.filter((record) => record?.type === "interrupted")).toEqual([]);
    const versions = records.flatMap((record) => (record?.type === "claimed" ? [record.version] : []));
    expect(versions.at(0)).toBe("1.0.0");
    expect(versions.at(-1)).toBe("2.0.0");
  });

  test("stopping reaches an agent on another worker immediately", async () => {
    const stepMs = 60_000;
    await startAgent(store, { agent: "long", plan: plan({ steps: 3, stepMs }) });
    await becomes(async () => (await inspectAgent(store, "long")).activation.state === "running");
    const began = performance.now();
    await stopAgent(store, "long");
    await becomes(async () => (await inspectAgent(store, "long")).activation.state === "idle");
    // Long before the step would have ended by itself.
    expect(performance.now() - began).toBeLessThan(stepMs / 2);
    expect(effectsOf(["long"])).toEqual([]);
  });

  function ended(agent: string) {
    return waitForEnd(store, agent, { timeoutMs: 50_000 });
  }
});

function plan(value: TestPlan): JsonValue {
  return value as JsonValue;
}

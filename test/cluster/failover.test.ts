import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { inspectAgent, startAgent, stopAgent, waitForEnd } from "../../src/cluster/agent-client.ts";
import { agentLog, toAgentRecord } from "../../src/cluster/agent-records.ts";
import { openPostgresStore } from "../../src/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "../../src/cluster/postgres/set-up-postgres.ts";
import type { JsonValue, Store } from "../../src/cluster/store.ts";
import { becomes } from "../../src/testing/engine-contract.ts";
import { emptyStore } from "./empty-store.ts";
import { setUpMs, startTestPostgres, type TestPostgres, whyNoPostgres } from "./test-postgres.ts";
import { readEffects, type TestPlan } from "./test-program.ts";
import { createFleet } from "./worker-fleet.ts";

const reason = await whyNoPostgres();
const title = `workers in processes of their own${reason === undefined ? "" : ` (skipped: ${reason})`}`;

describe.runIf(reason === undefined)(title, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startTestPostgres();
    await setUpPostgres({ url: server.url });
  }, setUpMs);
  afterAll(() => server?.stop());

  interface Scene {
    readonly store: Store;
    readonly effects: string;
    readonly fleet: ReturnType<typeof createFleet>;
  }

  async function within(slots: number, use: (scene: Scene) => Promise<void>): Promise<void> {
    await emptyStore(server.url);
    const effects = await mkdtemp(join(tmpdir(), "effects-"));
    onTestFinished(() => rm(effects, { recursive: true, force: true }));
    await using store = await openPostgresStore({ url: server.url });
    await using fleet = createFleet({ url: server.url, effects, slots });
    await use({ store, effects, fleet });
  }

  test("what a killed worker ran goes on elsewhere, with nothing lost or repeated [CLU-3]", () =>
    within(4, async ({ store, effects, fleet }) => {
      const [first, second] = await Promise.all([fleet.start(), fleet.start()]);
      const agents = ["a", "b", "c", "d"];
      for (const agent of agents) await startAgent(store, { agent, plan: plan({ steps: 25, stepMs: 20 }) });
      await becomes(() => readEffects(effects).length >= 8);
      const byFirst = readEffects(effects).filter(({ pid }) => pid === first.pid);
      const [victim, survivor] = byFirst.length >= 4 ? [first, second] : [second, first];
      victim.kill("SIGKILL");
      for (const agent of agents) expect((await ended(store, agent))?.status).toBe("completed");
      expect(await doneSteps(store, agents)).toEqual(agents.map(() => 25));
      expect(readEffects(effects)).toHaveLength(100);
      expect(survivor.errors()).toBe("");
    }));

  test("a frozen worker is replaced, and refused at its first write when it thaws [CLU-3]", () =>
    within(2, async ({ store, effects, fleet }) => {
      const first = await fleet.start();
      await startAgent(store, { agent: "a", plan: plan({ steps: 40, stepMs: 50 }) });
      await becomes(() => readEffects(effects).length >= 2);
      const second = await fleet.start();
      first.kill("SIGSTOP");
      const frozenAt = Date.now();
      await becomes(() => readEffects(effects).some(({ pid }) => pid === second.pid));
      expect(Date.now() - frozenAt).toBeLessThan(6_500);
      first.kill("SIGCONT");
      const thawedAt = Date.now();
      expect((await ended(store, "a"))?.status).toBe("completed");
      expect(await doneSteps(store, ["a"])).toEqual([40]);
      expect(readEffects(effects)).toHaveLength(40);
      const late = readEffects(effects).filter(({ pid, at }) => pid === first.pid && at > thawedAt);
      // The step whose wait was under way when the process froze may still finish; it has the key of its repetition.
      expect(late.length).toBeLessThanOrEqual(1);
      // It is a worker again.
      await becomes(async () => (await store.engine.workers()).length === 2);
    }));

  test("agents outlast a crash of the database [CLU-3]", () =>
    within(3, async ({ store, effects, fleet }) => {
      await Promise.all([fleet.start(), fleet.start()]);
      const agents = ["a", "b", "c", "d"];
      for (const agent of agents) await startAgent(store, { agent, plan: plan({ steps: 20, stepMs: 20 }) });
      await becomes(() => readEffects(effects).length >= 10);
      await server.halt();
      await pause(1_000);
      await server.start();
      for (const agent of agents) expect((await ended(store, agent))?.status).toBe("completed");
      expect(await doneSteps(store, agents)).toEqual(agents.map(() => 20));
      expect(readEffects(effects)).toHaveLength(80);
    }));

  test("a worker that is told to end hands its agents over between two steps", () =>
    within(2, async ({ store, effects, fleet }) => {
      const old = await fleet.start({ codeVersion: "1.0.0" });
      for (const agent of ["a", "b"])
        await startAgent(store, { agent, plan: plan({ steps: 80, stepMs: 20 }) });
      await becomes(() => readEffects(effects).length >= 4);
      await fleet.start({ codeVersion: "2.0.0" });
      expect(await old.drain()).toBe(0);
      for (const agent of ["a", "b"]) expect((await ended(store, agent))?.status).toBe("completed");
      const records = (await store.log.read(agentLog("a"))).map(({ record }) => toAgentRecord(record));
      expect(records.filter((record) => record?.type === "interrupted")).toEqual([]);
      const versions = records.flatMap((record) => (record?.type === "claimed" ? [record.version] : []));
      expect(versions).toEqual(["1.0.0", "2.0.0"]);
      expect(readEffects(effects)).toHaveLength(160);
    }));

  test("a tree of agents survives a worker killed every moment, and the parent hears of each child once [CLU-3]", () =>
    within(3, async ({ store, effects, fleet }) => {
      const workers = await Promise.all([fleet.start(), fleet.start(), fleet.start()]);
      const children = Array.from({ length: 9 }, (_, at) => ({
        agent: `child-${at}`,
        plan: { steps: 15, stepMs: 15 },
      }));
      await startAgent(store, { agent: "parent", plan: plan({ children }) });
      const over = waitForEnd(store, "parent", { timeoutMs: 25_000 });
      for (let kill = 0; kill < 5; kill += 1) {
        const target = readEffects(effects).length + 8;
        await becomes(() => readEffects(effects).length >= Math.min(target, 135));
        const victim = workers[kill % workers.length];
        victim?.kill("SIGKILL");
        workers[kill % workers.length] = await fleet.start();
      }
      const heard = ((await over)?.result ?? []) as unknown as readonly { readonly agent: string }[];
      expect(heard.map(({ agent }) => agent).sort()).toEqual(children.map(({ agent }) => agent).sort());
      expect(
        await doneSteps(
          store,
          children.map(({ agent }) => agent),
        ),
      ).toEqual(children.map(() => 15));
      expect(readEffects(effects)).toHaveLength(135);
    }));

  test("stopping reaches an agent on another worker at once", () =>
    within(1, async ({ store, effects, fleet }) => {
      await fleet.start();
      await startAgent(store, { agent: "a", plan: plan({ steps: 3, stepMs: 20_000 }) });
      await becomes(async () => (await inspectAgent(store, "a")).activation.state === "running");
      const began = performance.now();
      await stopAgent(store, "a");
      await becomes(async () => (await inspectAgent(store, "a")).activation.state === "idle");
      expect(performance.now() - began).toBeLessThan(1_000);
      expect(readEffects(effects)).toEqual([]);
    }));
});

async function doneSteps(store: Store, agents: readonly string[]): Promise<readonly number[]> {
  return Promise.all(
    agents.map(async (agent) => {
      const records = (await store.log.read(agentLog(agent))).map(({ record }) => toAgentRecord(record));
      return records.filter((record) => record?.type === "returned").length;
    }),
  );
}

function ended(store: Store, agent: string) {
  return waitForEnd(store, agent, { timeoutMs: 20_000 });
}

function plan(value: TestPlan): JsonValue {
  return value as JsonValue;
}

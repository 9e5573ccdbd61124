import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentProgram } from "@retinue/cluster/agent-program.ts";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openFileStore } from "@retinue/cluster/files/open-file-store.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { pruneAgents } from "@retinue/cluster/prune-agents.ts";
import { createReconciler, serveAgents } from "@retinue/cluster/serve-agents.ts";

import { storeApprovals } from "@retinue/cluster/session/store-approvals.ts";
import {
  glanceAtAgent,
  inspectAgent,
  readAgent,
  reviveAgent,
  sendMessage,
  startAgent,
  stopAgent,
  waitForEnd,
  watchAgent,
} from "@retinue/cluster/start-agent.ts";
import type { JsonValue, Store } from "@retinue/cluster/store.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { createTestDatabase } from "./test-database.ts";
import { createTestProgram, readEffects, type TestPlan } from "./test-program.ts";

const postgres = inject("postgres");

describe("agents in a file store", () => {
  describeAgents(async () => {
    const folder = await temporaryFolder();
    return openFileStore(join(folder, "store"));
  });
});

describe.skipIf(postgres.missing !== "")(`agents in a PostgreSQL store${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const { url, empty } = await createTestDatabase(postgres, "agents");
  describeAgents(async () => {
    await empty();
    return openPostgresStore({ url });
  });
});

function describeAgents(open: () => Promise<Store>): void {
  const within = async (use: (store: Store, effects: string) => Promise<void>): Promise<void> => {
    const effects = await temporaryFolder();
    const store = await open();
    try {
      await use(store, effects);
    } finally {
      await store.close();
    }
  };

  test("an agent works through its steps, each stored before the next", () =>
    within(async (store, effects) => {
      await using _ = await serveAgents(store, createTestProgram(effects), { slots: 2 });
      expect(await startAgent(store, { agent: "a", plan: plan({ steps: 3 }) })).toBe("started");
      expect(await startAgent(store, { agent: "a", plan: plan({ steps: 9 }) })).toBe("exists");
      expect(await ended(store, "a")).toEqual({ status: "completed", result: [] });
      const kinds = (await store.log.read(agentLog("a"))).map(({ record }) => toAgentRecord(record)?.type);
      const step = ["called", "returned"];
      expect(kinds).toEqual(["planned", "claimed", ...step, ...step, ...step, "ended"]);
      expect(readEffects(effects).map(({ key }) => key)).toEqual(["a/3", "a/5", "a/7"]);
    }));

  test("a waiting agent holds no slot, and a message wakes it, each message once [CLU-4]", () =>
    within(async (store, effects) => {
      await using _ = await serveAgents(store, createTestProgram(effects), { slots: 1 });
      await startAgent(store, { agent: "patient", plan: plan({ messages: 2 }) });
      await becomes(async () => (await inspectAgent(store, "patient")).status === "waiting");
      await startAgent(store, { agent: "other", plan: plan({ steps: 1 }) });
      expect((await ended(store, "other"))?.status).toBe("completed");
      await sendMessage(store, "patient", { id: "m1", body: "one" });
      await sendMessage(store, "patient", { id: "m1", body: "one" });
      await becomes(async () => (await inspectAgent(store, "patient")).activation.state === "idle");
      const { status, waitingFor } = await inspectAgent(store, "patient");
      expect({ status, waitingFor }).toEqual({ status: "waiting", waitingFor: { messages: 1 } });
      await sendMessage(store, "patient", { id: "m2", body: "two" });
      expect(await ended(store, "patient")).toEqual({ status: "completed", result: ["one", "two"] });
    }));

  test("a parent rests while its children work, on a single slot, and hears once of each [CLU-4]", () =>
    within(async (store, effects) => {
      await using _ = await serveAgents(store, createTestProgram(effects), { slots: 1 });
      const children = ["c1", "c2", "c3"].map((agent) => ({ agent, plan: { steps: 2 } }));
      await startAgent(store, { agent: "parent", plan: plan({ children }) });
      const ending = await ended(store, "parent");
      const received = (ending?.result ?? []) as unknown as readonly { readonly agent: string }[];
      expect(received.map(({ agent }) => agent).sort()).toEqual(["c1", "c2", "c3"]);
      expect((await readAgent(store, "c1")).tree).toBe("parent");
    }));

  test("a finished agent works again when it gets a message, without repeating its steps", () =>
    within(async (store, effects) => {
      await using _ = await serveAgents(store, createTestProgram(effects), { slots: 1 });
      await startAgent(store, { agent: "a", plan: plan({ steps: 2 }) });
      await ended(store, "a");
      await sendMessage(store, "a", { body: "more" });
      await becomes(async () => JSON.stringify((await readAgent(store, "a")).ending?.result) === '["more"]');
      expect(readEffects(effects)).toHaveLength(2);
    }));

  test("stopping ends an agent with its children and shuts out the worker that still runs it", () =>
    within(async (store, effects) => {
      await using _ = await serveAgents(store, createTestProgram(effects), { slots: 2 });
      const children = [{ agent: "child", plan: { steps: 1_000, stepMs: 5 } }];
      await startAgent(store, { agent: "parent", plan: plan({ children }) });
      await becomes(() => readEffects(effects).some(({ agent }) => agent === "child"));
      await stopAgent(store, "parent", "enough");
      expect(await ended(store, "child")).toEqual({ status: "stopped", result: "enough" });
      await becomes(async () => (await inspectAgent(store, "child")).activation.state === "idle");
      const count = readEffects(effects).length;
      const { lastSeq } = await readAgent(store, "child");
      await expect(sendMessage(store, "parent", { body: "still there?" })).rejects.toMatchObject({
        code: "agent-stopped",
      });
      expect((await readAgent(store, "child")).lastSeq).toBe(lastSeq);
      expect(readEffects(effects)).toHaveLength(count);
    }));

  test("an agent that rested until the engine forgot it still waits for a worker that has what it needs", () =>
    within(async (store, effects) => {
      const program = createTestProgram(effects);
      const needs = ["queue:gpu"];
      const first = await serveAgents(store, program, { slots: 1, queues: ["gpu"] });
      await startAgent(store, { agent: "a", plan: plan({ messages: 1 }), needs });
      await becomes(async () => (await inspectAgent(store, "a")).status === "waiting");
      await becomes(async () => (await store.engine.status("a")).state === "idle");
      await first.drain();
      expect(await store.engine.prune(Date.now() + 60_000)).toBe(1);
      const poor = await serveAgents(store, program, { slots: 1 });
      await sendMessage(store, "a", { body: "go" });
      await becomes(async () => JSON.stringify(await store.engine.status("a")).includes("gpu"));
      expect((await inspectAgent(store, "a")).status).toBe("waiting");
      await poor.drain();
      await using _ = await serveAgents(store, program, { slots: 1, queues: ["gpu"] });
      expect((await ended(store, "a"))?.status).toBe("completed");
    }));

  test("watchers get what the agent publishes, and a glance shows its status", () =>
    within(async (store) => {
      const received: JsonValue[] = [];
      const subscription = await watchAgent(store, "a", (event) => void received.push(event));
      const program: AgentProgram = async ({ publish }) => {
        publish({ said: "hello" });
        return { type: "parked", waitingFor: "nothing" };
      };
      await using _ = await serveAgents(store, program, { slots: 1 });
      await startAgent(store, { agent: "a", plan: { prompt: "x" } });
      await becomes(() => received.length === 1);
      subscription.close();
      expect(received).toEqual([{ said: "hello" }]);
      await becomes(async () => (await glanceAtAgent(store, "a")).status === "waiting");
      expect(await glanceAtAgent(store, "a")).toEqual({ plan: { prompt: "x" }, status: "waiting" });
      expect((await glanceAtAgent(store, "b")).status).toBe("unknown");
    }));

  test("pruning removes trees that ended, with their inboxes, and keeps those of which a part continues", () =>
    within(async (store, effects) => {
      const worker = await serveAgents(store, createTestProgram(effects), { slots: 2 });
      const done = [{ agent: "c1", plan: { steps: 1 } }];
      const waiting = [{ agent: "c2", plan: { steps: 1 } }];
      await startAgent(store, { agent: "old", plan: plan({ children: done }) });
      await startAgent(store, { agent: "young", plan: plan({ children: waiting, messages: 1 }) });
      await ended(store, "old");
      await ended(store, "c2");
      await becomes(async () => (await glanceAtAgent(store, "young")).status === "waiting");
      await worker.drain();
      const before = Date.now() + 60_000;
      expect([...(await pruneAgents(store, { before, isDryRun: true }))].sort()).toEqual(["c1", "old"]);
      await pruneAgents(store, { before });
      const names = (await store.log.list("")).map(({ name }) => name);
      expect(names).toEqual(["in/young", "run/c2", "run/young"]);
      expect(await pruneAgents(store, { before })).toEqual([]);
    }));

  test("an error that is the agent's own fails it with the reason, and waiting has a limit", () =>
    within(async (store) => {
      const program: AgentProgram = async () => {
        throw new RetinueError("invalid-option", "no such tool");
      };
      await using _ = await serveAgents(store, program, { slots: 1 });
      await startAgent(store, { agent: "a", plan: null });
      expect(await ended(store, "a")).toEqual({ status: "failed", result: "no such tool" });
      await expect(waitForEnd(store, "nobody", { timeoutMs: 10 })).rejects.toMatchObject({
        code: "no-such-agent",
      });
      await startAgent(store, { agent: "choosy", plan: null, needs: ["queue:gpu"] });
      expect(await waitForEnd(store, "choosy", { timeoutMs: 20 })).toBeUndefined();
      const { status, activation } = await inspectAgent(store, "choosy");
      expect({ status, activation }).toEqual({
        status: "queued",
        activation: { state: "queued", missing: ["queue:gpu"] },
      });
    }));

  test("an unknown error is not final: the agent is claimed a few times, then is a dead letter with the error, until it is revived [CLU-7]", () =>
    within(async (store) => {
      let isBroken = true;
      const program: AgentProgram = async ({ agent }) => {
        if (agent === "poison" && isBroken) throw new TypeError("cannot read this");
        return { type: "ended", ending: { status: "completed", result: null } };
      };
      await using _ = await serveAgents(store, program, { slots: 2, pauseMs: 5 });
      await startAgent(store, { agent: "poison", plan: null });
      for (const agent of ["n1", "n2", "n3"]) await startAgent(store, { agent, plan: null });
      const told = await ended(store, "poison");
      expect(told).toEqual({
        status: "failed",
        result: "No worker could run this agent: 5 claims failed, the last with: cannot read this",
      });
      expect(await inspectAgent(store, "poison")).toMatchObject({
        status: "dead-letter",
        deadLetter: { claims: 5, error: "cannot read this" },
      });
      await becomes(async () => (await store.engine.status("poison")).state === "idle");
      for (const agent of ["n1", "n2", "n3"]) expect((await ended(store, agent))?.status).toBe("completed");
      // Neither a wake nor a look for forgotten agents brings it back.
      await store.engine.wake("poison", "once more");
      await becomes(async () => (await store.engine.status("poison")).state === "idle");
      expect((await readAgent(store, "poison")).attempts.total).toBe(5);
      isBroken = false;
      expect(await reviveAgent(store, "poison", "ada")).toBe("revived");
      await becomes(async () => (await inspectAgent(store, "poison")).status === "completed");
      expect(await reviveAgent(store, "poison")).toBe("completed");
    }));

  test("a worker whose machine is sick gives its agents back, takes none and says so, and returns when it is well [CLU-7]", () =>
    within(async (store) => {
      let isSick = false;
      const said: string[] = [];
      const program: AgentProgram = async () => {
        if (isSick) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
        return { type: "ended", ending: { status: "completed", result: null } };
      };
      await using _ = await serveAgents(store, program, {
        slots: 2,
        pauseMs: 5,
        probe: async () => (isSick ? "The disk is full." : undefined),
        onError: (error) => said.push(String(error)),
      });
      isSick = true;
      const agents = ["a", "b", "c", "d", "e", "f"];
      for (const agent of agents) await startAgent(store, { agent, plan: null });
      await becomes(async () => (await store.engine.workers())[0]?.ailment === "The disk is full.");
      expect(said.join()).toContain("takes no agents for now: The disk is full.");
      // No worker runs them, and none reports it.
      await becomes(async () => (await inspectAgent(store, "a")).status === "queued");
      isSick = false;
      for (const agent of agents) expect((await ended(store, agent))?.status).toBe("completed");
      expect(said.join()).toContain("takes agents again");
      // Written beside the work, so it may come after the last end.
      await becomes(async () => (await store.engine.workers())[0]?.ailment === undefined);
    }));

  test("an agent whose worker dies each time is a dead letter after five claims, which were counted before the work [CLU-7]", () =>
    within(async (store) => {
      const claims = [1, 2, 3, 4, 5].map((number) => ({
        type: "claimed",
        worker: `dead-${number}`,
        version: "1",
      }));
      const planned = { type: "planned", plan: {}, needs: [], tree: "deadly" };
      let runs = 0;
      const program: AgentProgram = async () => {
        runs += 1;
        return { type: "ended", ending: { status: "completed", result: null } };
      };
      await store.log.append(agentLog("deadly"), [planned, ...claims]);
      // One that got further between two deaths continues.
      const step = { type: "entry", entry: "a step" };
      const further = claims.flatMap((claim) => [claim, step]);
      await store.log.append(agentLog("innocent"), [{ ...planned, tree: "innocent" }, ...further]);
      await using _ = await serveAgents(store, program, { slots: 2, pauseMs: 5 });
      for (const agent of ["deadly", "innocent"]) await store.engine.wake(agent, "start");
      expect((await ended(store, "innocent"))?.status).toBe("completed");
      expect(String((await ended(store, "deadly"))?.result)).toMatch(/5 claims failed, .*dead-5 died/);
      expect(runs).toBe(1);
    }));

  test("an agent with work that nothing is scheduled for is found, also when only its mail tells of it [CLU-7]", () =>
    within(async (store) => {
      const planned = (agent: string) => ({ type: "planned", plan: {}, needs: [], tree: agent });
      await store.log.append(agentLog("lost"), [planned("lost")]);
      await store.log.append(agentLog("asked"), [planned("asked"), { type: "parked", waitingFor: null }]);
      await store.log.append(agentLog("waits"), [planned("waits"), { type: "parked", waitingFor: null }]);
      await store.log.append(agentLog("over"), [
        planned("over"),
        { type: "ended", ending: { status: "completed", result: 1 } },
      ]);
      await new Promise((resolve) => setTimeout(resolve, 2));
      await store.log.append("in/asked", [{ id: "answer", body: "yes" }]);
      expect((await inspectAgent(store, "lost")).status).toBe("stranded");
      const reconciler = createReconciler(store);
      // What has just been written may be about to be scheduled.
      expect(await reconciler.run()).toEqual([]);
      expect(await reconciler.run()).toEqual(["asked", "lost"]);
      expect((await inspectAgent(store, "lost")).status).toBe("queued");
      expect(await reconciler.run()).toEqual([]);
      const program: AgentProgram = async () => ({ type: "parked", waitingFor: null });
      await using _ = await serveAgents(store, program, { slots: 2 });
      await becomes(async () => (await inspectAgent(store, "lost")).status === "waiting");
      await becomes(async () => (await store.engine.status("asked")).state === "idle");
      expect(await createReconciler(store).run()).toEqual([]);
    }));

  test("of an allowance and a refusal of one question, given at the same time, one counts and the other is told whose [CLU-4]", () =>
    within(async (store) => {
      const question = { id: "q", tool: "Bash", input: {}, reason: "no rule", path: ["main"] };
      for (let round = 0; round < 5; round += 1) {
        const agent = `asks-${round}`;
        await store.log.append(agentLog(agent), [
          { type: "planned", plan: {}, needs: ["queue:none"], tree: agent },
          { type: "parked", waitingFor: { type: "approval", question } },
        ]);
        const approvals = storeApprovals(store);
        const answers = await Promise.allSettled([
          approvals.answer(agent, { type: "allow", for: "call" }, { by: "ada" }),
          approvals.answer(agent, { type: "deny" }, { by: "bea" }),
        ]);
        const refused = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
        expect(refused).toHaveLength(1);
        expect(refused[0]).toMatchObject({
          code: "already-answered",
          message: expect.stringMatching(/(allowed by ada|denied by bea)/),
        });
        expect(await store.log.read(`in/${agent}`)).toHaveLength(1);
      }
    }));
}

function ended(store: Store, agent: string) {
  return waitForEnd(store, agent, { timeoutMs: 50_000 });
}

function plan(value: TestPlan): JsonValue {
  return value as JsonValue;
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

import { setTimeout as pause } from "node:timers/promises";
import type { Activation, Engine, RunActivation, ServeOptions, Store } from "@retinue/cluster/store.ts";
import { becomes, noting, refusalOf, rests } from "./becomes.ts";
import { describeEngineStops } from "./describe-engine-stops.ts";
import type { TestRunner } from "./describe-model-contract.ts";
import type { WithStore } from "./describe-store-contract.ts";

/** What every Engine promises. */
export function describeEngineContract(withStore: WithStore, runner: TestRunner): void {
  describeWaking(withStore, runner);
  describeRepeating(withStore, runner);
  describeRoom(withStore, runner);
  describeEngineStops(withStore, runner);
}

function describeWaking(withStore: WithStore, { test, expect }: TestRunner): void {
  test("a wake runs the agent once, and the same activation id counts once", () =>
    withStore(async ({ engine }) => {
      const ran: string[] = [];
      await using _ = await engine.serve(noting(ran), { slots: 2 });
      await engine.wake("a", "a#1");
      await rests(engine, "a");
      await engine.wake("a", "a#1");
      await engine.wake("b", "b#1");
      await rests(engine, "b");
      await engine.wake("a", "a#2");
      await becomes(() => ran.length === 3);
      expect(ran).toEqual(["a", "b", "a"]);
      expect(await refusalOf(() => engine.wake("", "x"))).toBe("invalid-name");
    }));

  test("no wake is lost and no two activations of one agent overlap", () =>
    withStore(async (store) => {
      const mailbox = createMailbox(store);
      await using _ = await store.engine.serve(mailbox.run, { slots: 3 });
      const sent = 60;
      for (let number = 1; number <= sent; number += 1) {
        await mailbox.send(`agent-${number % 4}`, number);
        if (number % 7 === 0) await pause(number % 5);
      }
      await becomes(() => mailbox.taken() === sent);
      expect(mailbox.disorder()).toEqual([]);
      expect(mailbox.overlaps()).toBe(0);
    }));
}

function describeRepeating(withStore: WithStore, { test, expect }: TestRunner): void {
  test('an activation that returns "again" is followed by another', () =>
    withStore(async ({ engine }) => {
      let runs = 0;
      const run: RunActivation = async () => (++runs < 3 ? "again" : "done");
      await using _ = await engine.serve(run, { slots: 1 });
      await engine.wake("a", "1");
      await becomes(() => runs === 3);
      await rests(engine, "a");
      expect(runs).toBe(3);
    }));

  test("an activation that throws is reported and is not done: the agent runs again after a pause", () =>
    withStore(async ({ engine }) => {
      const errors: string[] = [];
      let runs = 0;
      const run: RunActivation = async () => {
        runs += 1;
        if (runs === 1) throw new Error("broken");
        return "done";
      };
      const onError = (error: unknown, agent?: string): void =>
        void errors.push(`${agent}: ${String(error)}`);
      await using _ = await engine.serve(run, { slots: 1, onError });
      await engine.wake("a", "1");
      await becomes(() => runs === 2);
      await rests(engine, "a");
      expect(errors).toEqual(["a: Error: broken"]);
    }));

  test("a delayed wake waits, and does not hold back another one", () =>
    withStore(async ({ engine }) => {
      const ran: string[] = [];
      await using _ = await engine.serve(noting(ran), { slots: 1 });
      await engine.wake("held", "later", { delayMs: 3_600_000 });
      await engine.wake("held", "now");
      await becomes(() => ran.length === 1);
      const start = Date.now();
      await engine.wake("delayed", "later", { delayMs: 300 });
      await becomes(() => ran.length === 2);
      expect(ran).toEqual(["held", "delayed"]);
      expect(Date.now() - start >= 290).toBe(true);
    }));

  test("a wake without a worker is kept, also over a restart", () =>
    withStore(async ({ engine }, subject) => {
      await engine.wake("a", "1");
      expect((await engine.status("a")).state).toBe("queued");
      const again = await subject.reopen();
      const ran: string[] = [];
      await using _ = await again.engine.serve(noting(ran), { slots: 1 });
      await becomes(() => ran.includes("a"));
    }));
}

function describeRoom(withStore: WithStore, { test, expect }: TestRunner): void {
  test("no more agents run concurrently than there are slots, and all get their turn", () =>
    withStore(async ({ engine }) => {
      expect(await maxConcurrency(engine, { slots: 2 })).toEqual({ most: 2, ran: 8 });
    }));

  test("no more agents run concurrently than the limit of the store", () =>
    withStore(async ({ engine }) => {
      await engine.limit(1);
      expect(await maxConcurrency(engine, { slots: 4 })).toEqual({ most: 1, ran: 8 });
      await engine.limit(undefined);
    }));

  test("a lower priority number runs first", () =>
    withStore(async ({ engine }) => {
      const ran: string[] = [];
      const gate = Promise.withResolvers<void>();
      const run: RunActivation = async ({ agent }) => {
        ran.push(agent);
        if (agent === "first") await gate.promise;
        return "done";
      };
      await using _ = await engine.serve(run, { slots: 1 });
      await engine.wake("first", "1");
      await becomes(() => ran.length === 1);
      await engine.wake("later", "1", { priority: 5 });
      await engine.wake("sooner", "1", { priority: 1 });
      gate.resolve();
      await becomes(() => ran.length === 3);
      expect(ran).toEqual(["first", "sooner", "later"]);
    }));

  test("an agent waits for a worker that has what it needs, and its status says what is missing", () =>
    withStore(async ({ engine }) => {
      const ran: string[] = [];
      const run = noting(ran);
      const poor = await engine.serve(run, { slots: 1, has: ["tool:a"] });
      await engine.wake("choosy", "1", { needs: ["tool:b", "tool:a"] });
      await engine.wake("plain", "1");
      await becomes(() => ran.includes("plain"));
      expect(await engine.status("choosy")).toEqual({ state: "queued", missing: ["tool:b"] });
      await poor.drain();
      expect(await engine.workers()).toEqual([]);
      await using _ = await engine.serve(run, { slots: 1, has: ["tool:a", "tool:b", "tool:c"] });
      await becomes(() => ran.includes("choosy"));
      const [worker] = await engine.workers();
      expect(worker?.has).toEqual(["tool:a", "tool:b", "tool:c"]);
      await rests(engine, "choosy");
      await engine.wake("choosy", "2");
      await becomes(() => ran.filter((agent) => agent === "choosy").length === 2);
    }));
}

/** Agents that take numbers from an inbox log and rest when it is empty; the classic place for lost wake-ups. */
function createMailbox({ log, engine }: Store) {
  const seen = new Map<string, number[]>();
  const inside = new Set<string>();
  let overlaps = 0;
  return {
    async send(agent: string, number: number): Promise<void> {
      const seq = await log.append(`in/${agent}`, [number]);
      await engine.wake(agent, `${agent}#${seq}`);
    },
    run: async ({ agent }: Activation): Promise<"done"> => {
      if (inside.has(agent)) overlaps += 1;
      inside.add(agent);
      const own = seen.get(agent) ?? [];
      seen.set(agent, own);
      const pendingMessages = await log.read(`in/${agent}`, own.length);
      await pause(1);
      own.push(...pendingMessages.map(({ record }) => Number(record)));
      inside.delete(agent);
      return "done";
    },
    taken: () => [...seen.values()].flat().length,
    disorder: () =>
      [...seen.values()].flatMap((own) => own.filter((number, at) => number < (own[at - 1] ?? 0))),
    overlaps: () => overlaps,
  };
}

async function maxConcurrency(
  engine: Engine,
  options: ServeOptions,
): Promise<{ readonly most: number; readonly ran: number }> {
  let [now, most, ran] = [0, 0, 0];
  const run: RunActivation = async () => {
    now += 1;
    most = Math.max(most, now);
    await pause(15);
    now -= 1;
    ran += 1;
    return "done";
  };
  await using _ = await engine.serve(run, options);
  for (let agent = 0; agent < 8; agent += 1) await engine.wake(`agent-${agent}`, "1");
  await becomes(() => ran === 8);
  return { most, ran };
}

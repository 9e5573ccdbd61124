import type { RunActivation } from "@retinue/cluster/store.ts";
import { aborted, becomes, noting, refusalOf, rests } from "./becomes.ts";
import type { TestRunner } from "./describe-model-contract.ts";
import type { WithStore } from "./describe-store-contract.ts";

/** What every Engine promises about cancelling, shutting down and forgetting. */
export function describeEngineStops(withStore: WithStore, runner: TestRunner): void {
  describeCancelling(withStore, runner);
  describeShutdown(withStore, runner);
}

function describeCancelling(withStore: WithStore, { test, expect }: TestRunner): void {
  test("cancelling aborts an activation that runs, and takes back what was to follow it", () =>
    withStore(async ({ engine }) => {
      let runs = 0;
      const run: RunActivation = async ({ signal }) => {
        runs += 1;
        if (runs === 1) await aborted(signal);
        return "done";
      };
      await using _ = await engine.serve(run, { slots: 1 });
      await engine.wake("a", "1");
      await becomes(() => runs === 1);
      await engine.wake("a", "2");
      await engine.cancel("a");
      await rests(engine, "a");
      expect(runs).toBe(1);
      await engine.wake("a", "3");
      await becomes(() => runs === 2);
    }));

  test("a wake that comes after the cancellation counts, also while the cancelled activation winds down", () =>
    withStore(async ({ engine }) => {
      const gate = Promise.withResolvers<void>();
      const wereAborted: boolean[] = [];
      const run: RunActivation = async ({ signal }) => {
        if (wereAborted.length === 0) {
          await aborted(signal);
          await gate.promise;
        }
        wereAborted.push(signal.aborted);
        return "done";
      };
      await using _ = await engine.serve(run, { slots: 1 });
      await engine.wake("a", "1");
      await becomes(async () => (await engine.status("a")).state === "running");
      await engine.cancel("a");
      await engine.wake("a", "2");
      gate.resolve();
      await becomes(() => wereAborted.length === 2);
      expect(wereAborted).toEqual([true, false]);
      await rests(engine, "a");
    }));

  test("cancelling takes back an activation that has not started", () =>
    withStore(async ({ engine }) => {
      await engine.wake("a", "1");
      await engine.wake("b", "1");
      await engine.cancel("a");
      await engine.cancel("never there");
      expect(await engine.status("a")).toEqual({ state: "idle" });
      const ran: string[] = [];
      await using _ = await engine.serve(noting(ran), { slots: 1 });
      await becomes(() => ran.includes("b"));
      await engine.wake("a", "2");
      await becomes(() => ran.includes("a"));
      expect(ran).toEqual(["b", "a"]);
    }));
}

function describeShutdown(withStore: WithStore, { test, expect }: TestRunner): void {
  test("draining asks what runs to stop, takes nothing new, and leaves the rest to the next worker", () =>
    withStore(async ({ engine }) => {
      const ran: string[] = [];
      const run: RunActivation = async ({ agent, draining }) => {
        ran.push(agent);
        if (ran.length > 1) return "done";
        await aborted(draining);
        return "again";
      };
      const worker = await engine.serve(run, { slots: 1 });
      await engine.wake("a", "1");
      await becomes(() => ran.length === 1);
      await engine.wake("b", "1");
      await worker.drain();
      expect(ran).toEqual(["a"]);
      await using _ = await engine.serve(run, { slots: 1 });
      await becomes(() => ran.length === 3);
      expect([...ran].sort()).toEqual(["a", "a", "b"]);
    }));

  test("what does not stop in time is aborted, and runs again on the next worker", () =>
    withStore(async ({ engine }) => {
      let runs = 0;
      const run: RunActivation = async ({ signal }) => {
        runs += 1;
        if (runs === 1) await aborted(signal);
        signal.throwIfAborted();
        return "done";
      };
      const worker = await engine.serve(run, { slots: 1 });
      await engine.wake("a", "1");
      await becomes(() => runs === 1);
      await worker.drain(10);
      await using _ = await engine.serve(run, { slots: 1 });
      await becomes(() => runs === 2);
    }));

  test("one process is one worker, and may be one again after draining", () =>
    withStore(async ({ engine }) => {
      const run: RunActivation = async () => "done";
      const worker = await engine.serve(run, { slots: 1 });
      expect(await refusalOf(() => engine.serve(run, { slots: 1 }))).toBe("already-serving");
      await worker.drain();
      await using _ = await engine.serve(run, { slots: 1 });
    }));

  test("pruning forgets agents that rest and keeps those that are waiting", () =>
    withStore(async ({ engine }) => {
      const worker = await engine.serve(async () => "done", { slots: 1 });
      await engine.wake("old", "1");
      await rests(engine, "old");
      await worker.drain();
      await engine.wake("waiting", "1");
      expect(await engine.prune(Date.now() + 60_000)).toBe(1);
      expect(await engine.status("old")).toEqual({ state: "idle" });
      expect((await engine.status("waiting")).state).toBe("queued");
    }));
}

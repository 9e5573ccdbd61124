import { setTimeout as pause } from "node:timers/promises";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  type Activation,
  type Engine,
  isConflict,
  type JsonValue,
  type Log,
  type RunActivation,
  type ServeOptions,
  type Store,
} from "@retinue/cluster/store.ts";
import { aborted, becomes, noting, refusalOf, rests } from "./becomes.ts";
import { isTestRunner, type TestRunner } from "./describe-model-contract.ts";

/** A store under test. */
export interface StoreSubject {
  readonly store: Store;
  /** Closes the store and opens it again, as after a restart of the process. */
  reopen(): Promise<Store>;
  /** Removes everything. */
  dispose(): Promise<void>;
}

export type CreateStore = () => Promise<StoreSubject>;

export type WithStore = (use: (store: Store, subject: StoreSubject) => Promise<void>) => Promise<void>;

/** The rules that every Store keeps, as tests of the runner that is passed in. `create` gives an empty store each time. */
export function describeStoreContract(name: string, create: CreateStore, runner: TestRunner): void {
  checkArgument("The first argument of describeStoreContract()", checks.filled, name);
  checkArgument("The second argument of describeStoreContract()", checks.call, create);
  checkArgument("The third argument of describeStoreContract()", isTestRunner, runner);
  const withStore: WithStore = async (use) => {
    const subject = await create();
    try {
      await use(subject.store, subject);
    } finally {
      await subject.dispose();
    }
  };
  runner.describe(`${name} keeps the contract of a store`, () => {
    runner.describe("log", () => describeLogContract(withStore, runner));
    runner.describe("engine", () => describeEngineContract(withStore, runner));
    runner.describe("bus", () => describeBusContract(withStore, runner));
  });
}

/** What every Bus promises. */
function describeBusContract(withStore: WithStore, runner: TestRunner): void {
  const { test, expect } = runner;
  test("who has subscribed hears what is published on the topic, in order, and nothing else", () =>
    withStore(async ({ bus }) => {
      const first: JsonValue[] = [];
      const second: JsonValue[] = [];
      await bus.subscribe("a", (event) => void first.push(event));
      await bus.subscribe("a", (event) => void second.push(event));
      const events: JsonValue[] = [1, { text: "zwei \u0000" }, null, ["drei"]];
      bus.publish("b", "not for us");
      for (const event of events) bus.publish("a", event);
      await becomes(() => first.length >= 4 && second.length >= 4);
      expect(first).toEqual(events);
      expect(second).toEqual(events);
    }));

  test("a closed subscription hears nothing more, and others on the topic continue", () =>
    withStore(async ({ bus }) => {
      const received: JsonValue[] = [];
      const kept: JsonValue[] = [];
      const subscription = await bus.subscribe("a", (event) => void received.push(event));
      await bus.subscribe("a", (event) => void kept.push(event));
      bus.publish("a", 1);
      await becomes(() => received.length === 1 && kept.length === 1);
      subscription.close();
      bus.publish("a", 2);
      await becomes(() => kept.length === 2);
      const again = await bus.subscribe("a", (event) => void received.push(event));
      bus.publish("a", 3);
      await becomes(() => received.length === 2);
      again.close();
      expect(received).toEqual([1, 3]);
    }));

  test("closing a subscription twice does not end one that was made in between", () =>
    withStore(async ({ bus }) => {
      const received: JsonValue[] = [];
      const first = await bus.subscribe("a", () => undefined);
      first.close();
      await bus.subscribe("a", (event) => void received.push(event));
      first.close();
      bus.publish("a", 1);
      await becomes(() => received.length === 1);
    }));
  describePublishing(withStore, runner);
}

function describePublishing(withStore: WithStore, { test, expect }: TestRunner): void {
  test("an event that is too large arrives as a notice, and harms nothing after it", () =>
    withStore(async ({ bus }) => {
      const received: JsonValue[] = [];
      await bus.subscribe("a", (event) => void received.push(event));
      const large = "x".repeat(200_000);
      bus.publish("a", large);
      bus.publish("a", "after");
      await becomes(() => received.length === 2);
      const [first] = received;
      expect(
        first === large || (typeof first === "object" && JSON.stringify(first).startsWith('{"oversize":')),
      ).toBe(true);
      expect(received[1]).toBe("after");
    }));

  test("publishing after the store was closed does nothing", () =>
    withStore(async ({ bus, close }) => {
      await close();
      bus.publish("a", 1);
    }));
}

/** What every Log promises. */
function describeLogContract(withStore: WithStore, runner: TestRunner): void {
  const { test, expect } = runner;
  test("records are numbered from 1 and read back in order, whole or in part", () =>
    withStore(async ({ log }) => {
      expect(await log.read("a")).toEqual([]);
      expect(await log.append("a", ["one"])).toBe(1);
      expect(await log.append("a", ["two", "three"])).toBe(3);
      expect(await texts(log, "a")).toEqual(["1 one", "2 two", "3 three"]);
      expect(await texts(log, "a", 1)).toEqual(["2 two", "3 three"]);
      expect(await texts(log, "a", 3)).toEqual([]);
      expect(await texts(log, "a", -1)).toEqual(["3 three"]);
      expect(await texts(log, "a", -9)).toEqual(["1 one", "2 two", "3 three"]);
      expect((await log.read("a", 0, 1)).map(({ seq }) => seq)).toEqual([1]);
      expect((await log.read("a", 1, 1)).map(({ seq }) => seq)).toEqual([2]);
      expect((await log.read("a", -2, 1)).map(({ seq }) => seq)).toEqual([2]);
      expect(await log.append("a", [], 3)).toBe(3);
    }));

  test("an append that expects another end is refused as a conflict and writes nothing", () =>
    withStore(async ({ log }) => {
      await log.append("a", ["one"], 0);
      for (const wrong of [0, 2, 5])
        expect(await refusal(() => log.append("a", ["no"], wrong))).toBe("conflict");
      expect(await refusal(() => log.append("a", [], 0))).toBe("conflict");
      expect(await texts(log, "a")).toEqual(["1 one"]);
      expect(await log.append("a", ["two"], 1)).toBe(2);
    }));

  test("a relaxed append is read back immediately and is refused like any other", () =>
    withStore(async ({ log }) => {
      expect(await log.append("a", [1], 0, { relaxed: true })).toBe(1);
      expect(await log.append("a", [2], undefined, { relaxed: true })).toBe(2);
      expect(await refusal(() => log.append("a", [3], 1, { relaxed: true }))).toBe("conflict");
      expect(await log.append("a", [3], 2)).toBe(3);
      expect((await log.read("a")).map(({ record }) => record)).toEqual([1, 2, 3]);
    }));
  describeWriters(withStore, runner);
  describeRecords(withStore, runner);
  describeNames(withStore, runner);
}

function describeWriters(withStore: WithStore, { test, expect }: TestRunner): void {
  test("of many who expect the same end exactly one succeeds", () =>
    withStore(async ({ log }) => {
      await log.append("a", ["start"]);
      const attempts = Array.from({ length: 20 }, (_, index) =>
        refusal(() => log.append("a", [index, index], 1)),
      );
      const outcomes = await Promise.all(attempts);
      expect(outcomes.filter((outcome) => outcome === undefined).length).toBe(1);
      expect(outcomes.filter((outcome) => outcome === "conflict").length).toBe(19);
      const winner = outcomes.indexOf(undefined);
      expect(await texts(log, "a")).toEqual(["1 start", `2 ${winner}`, `3 ${winner}`]);
    }));

  test("appends without an expectation never lose or mix each other's records", () =>
    withStore(async ({ log }) => {
      const writers = Array.from({ length: 12 }, (_, writer) => writer);
      await Promise.all(
        writers.map(async (writer) => {
          for (let round = 0; round < 5; round += 1)
            await log.append("a", [`${writer}/${round}a`, `${writer}/${round}b`]);
        }),
      );
      const entries = await log.read("a");
      expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 120 }, (_, index) => index + 1));
      for (const writer of writers) {
        const own = entries.flatMap(({ record }) =>
          String(record).startsWith(`${writer}/`) ? [String(record)] : [],
        );
        expect(own).toEqual(
          [0, 1, 2, 3, 4].flatMap((round) => [`${writer}/${round}a`, `${writer}/${round}b`]),
        );
      }
      for (const [index, { record }] of entries.entries())
        if (String(record).endsWith("a"))
          expect(entries[index + 1]?.record).toBe(String(record).replace("a", "b"));
    }));
}

function describeRecords(withStore: WithStore, { test, expect }: TestRunner): void {
  test("records come back exactly as they were, whatever they hold", () =>
    withStore(async ({ log }, subject) => {
      const strange: JsonValue[] = [
        null,
        "",
        "NUL \u0000 and \u0001, line\nbreak, \u2028, half a pair \ud800, 漢字 👩‍👩‍👧",
        { z: 1, a: [0.1, 1e300, -0.5, true, { deep: { deeper: [] } }], "\u0000key": "x" },
        JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'),
        [],
      ];
      await log.append("strange", strange);
      const read = (await log.read("strange")).map(({ record }) => record);
      expect(read.map((record) => JSON.stringify(record))).toEqual(
        strange.map((record) => JSON.stringify(record)),
      );
      const again = await subject.reopen();
      const reread = (await again.log.read("strange")).map(({ record }) => JSON.stringify(record));
      expect(reread).toEqual(strange.map((record) => JSON.stringify(record)));
    }));

  test("a record may be large", () =>
    withStore(async ({ log }) => {
      const large = "0123456789abcdef".repeat(65_536);
      await log.append("large", [large, "after"]);
      const [first, second] = await log.read("large");
      expect(first?.record === large).toBe(true);
      expect(second?.record).toBe("after");
    }));

  test("entries have the time when they were appended", () =>
    withStore(async ({ log }) => {
      await log.append("a", ["x"]);
      const [entry] = await log.read("a");
      expect(Math.abs((entry?.at ?? 0) - Date.now()) < 60_000).toBe(true);
    }));
}

function describeNames(withStore: WithStore, { test, expect }: TestRunner): void {
  test("different names are different logs, also where they differ little", () =>
    withStore(async ({ log }) => {
      const names = ["a", "A", "a/b", "a_b", "a%b", "ä", "../a", ".", "a".repeat(400)];
      for (const [index, name] of names.entries()) await log.append(name, [index]);
      for (const [index, name] of names.entries()) expect(await texts(log, name)).toEqual([`1 ${index}`]);
    }));

  test("a name that cannot be kept is refused", () =>
    withStore(async ({ log }) => {
      for (const name of ["", "a".repeat(401), "a\nb", "a\u0000"])
        expect(await refusal(() => log.append(name, ["x"]))).toBe("invalid-name");
    }));

  test("logs are listed by prefix with their last number", () =>
    withStore(async ({ log }) => {
      expect(await log.list("")).toEqual([]);
      for (const name of ["run/b", "run/a", "run_c", "in/a", "run/%"]) await log.append(name, [1]);
      await log.append("run/a", [2]);
      const listed = async (prefix: string) =>
        (await log.list(prefix)).map(({ name, lastSeq }) => `${name} ${lastSeq}`);
      expect(await listed("run/")).toEqual(["run/% 1", "run/a 2", "run/b 1"]);
      expect(await listed("run/%")).toEqual(["run/% 1"]);
      expect((await listed("")).length).toBe(5);
      expect(await listed("zzz")).toEqual([]);
      const [, second] = await log.list("run/", { last: true });
      expect([second?.last?.seq, second?.last?.record]).toEqual([2, 2]);
      expect((await log.list("run/a"))[0]?.last === undefined).toBe(true);
    }));

  test("removing takes a whole log, or its beginning without changing the numbers of the rest", () =>
    withStore(async ({ log }) => {
      await log.append("a", ["one", "two", "three"]);
      await log.append("b", ["other"]);
      await log.remove("a", 2);
      expect(await texts(log, "a")).toEqual(["3 three"]);
      expect(await log.append("a", ["four"], 3)).toBe(4);
      await log.remove("a");
      await log.remove("never there");
      expect(await log.read("a")).toEqual([]);
      expect((await log.list("")).map(({ name }) => name)).toEqual(["b"]);
    }));
}

async function texts(log: Log, name: string, from?: number): Promise<string[]> {
  return (await log.read(name, from)).map(({ seq, record }) => `${seq} ${record}`);
}

/** Undefined when it succeeded. */
async function refusal(action: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await action();
    return undefined;
  } catch (error) {
    if (isConflict(error)) return "conflict";
    return isRetinueError(error) ? error.code : String(error);
  }
}

/** What every Engine promises. */
function describeEngineContract(withStore: WithStore, runner: TestRunner): void {
  const { test, expect } = runner;
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
  describeRepeating(withStore, runner);
  describeRoom(withStore, runner);
  // What every Engine promises about cancelling, shutting down and forgetting.
  describeCancelling(withStore, runner);
  describeShutdown(withStore, runner);
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

import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { isConflict, type JsonValue, type Log } from "@retinue/cluster/store.ts";
import type { TestRunner } from "./describe-model-contract.ts";
import type { WithStore } from "./describe-store-contract.ts";

/** What every Log promises. */
export function describeLogContract(withStore: WithStore, runner: TestRunner): void {
  describeAppending(withStore, runner);
  describeWriters(withStore, runner);
  describeRecords(withStore, runner);
  describeNames(withStore, runner);
}

function describeAppending(withStore: WithStore, { test, expect }: TestRunner): void {
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
async function refusal(deed: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await deed();
    return undefined;
  } catch (error) {
    if (isConflict(error)) return "conflict";
    return isRetinueError(error) ? error.code : String(error);
  }
}

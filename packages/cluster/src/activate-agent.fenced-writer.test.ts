import { describe, expect, test } from "vitest";
import { createFencedWriter } from "./activate-agent.ts";
import { type JsonValue, type Log, logConflict } from "./store.ts";

/** A log that can lose its last records, as a server does that crashes before they are on the disk. */
function createForgetfulLog() {
  const records: JsonValue[] = [];
  const log: Pick<Log, "read" | "append"> = {
    async read(_name, from = 0) {
      const all = records.map((record, at) => ({ seq: at + 1, at: 0, record }));
      return all.slice(from);
    },
    async append(name, added, expect = records.length) {
      if (expect !== records.length) throw logConflict(name, expect);
      return records.push(...added);
    },
  };
  // Only what the writer uses.
  return {
    log: log as Log,
    records,
    forget: (count: number) => records.splice(records.length - count, count),
  };
}

describe("what a server lost that crashed", () => {
  test("is written again by the owner of the log, before it has any effect [CLU-3]", async () => {
    const { log, records, forget } = createForgetfulLog();
    const writer = createFencedWriter(log, "a", 0);
    await writer.append(["claim"]);
    await writer.append(["result 1"], { relaxed: true });
    await writer.append(["result 2"], { relaxed: true });
    forget(1);
    expect(await writer.append(["call"])).toBe(4);
    expect(records).toEqual(["claim", "result 1", "result 2", "call"]);
    await writer.append(["result 3"], { relaxed: true });
    forget(1);
    await writer.append(["end"]);
    expect(records).toEqual(["claim", "result 1", "result 2", "call", "result 3", "end"]);
  });

  test("is not written over what another owner has written since [CLU-3]", async () => {
    const { log, records, forget } = createForgetfulLog();
    const writer = createFencedWriter(log, "a", 0);
    await writer.append(["claim"]);
    await writer.append(["result 1", "result 2"], { relaxed: true });
    forget(2);
    records.push("claim of another");
    await expect(writer.append(["call"])).rejects.toMatchObject({ code: "log-conflict" });
    await expect(writer.append(["call"])).rejects.toMatchObject({ code: "log-conflict" });
    expect(records).toEqual(["claim", "claim of another"]);
  });

  test("cannot be a record that had to be on the disk [CLU-3]", async () => {
    const { log, records, forget } = createForgetfulLog();
    const writer = createFencedWriter(log, "a", 0);
    await writer.append(["claim"]);
    await writer.append(["call"]);
    forget(1);
    await expect(writer.append(["result"])).rejects.toMatchObject({ code: "log-conflict" });
    expect(records).toEqual(["claim"]);
  });
});

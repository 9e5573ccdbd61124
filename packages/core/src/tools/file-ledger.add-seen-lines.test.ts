import { describe, expect, test } from "vitest";
import { addSeenLines, createSessionFiles, refuseBase, type SeenFile } from "./file-ledger.ts";

const read = { digest: "d1", mtimeMs: 1 };

describe("what an agent has seen of a file", () => {
  test("a file read in pieces counts as read whole once no line is missing", () => {
    let seen: SeenFile | undefined;
    const add = (first: number, last: number) => {
      seen = addSeenLines(seen, read, { first, last, total: 30 });
      return seen.partial;
    };
    expect([add(1, 10), add(21, 30), add(5, 15)]).toEqual([true, true, true]);
    expect(seen?.lines).toEqual([
      [1, 15],
      [21, 30],
    ]);
    expect(add(16, 20)).toBe(false);
    expect(add(3, 3)).toBe(false);
  });

  test("pieces of other content do not count, and an empty file is whole", () => {
    const before = addSeenLines(undefined, { digest: "d0", mtimeMs: 0 }, { first: 1, last: 10, total: 20 });
    expect(addSeenLines(before, read, { first: 11, last: 20, total: 20 }).partial).toBe(true);
    expect(addSeenLines(undefined, read, { first: 1, last: 0, total: 0 }).partial).toBe(false);
  });
});

describe("changing a file needs a base that was seen", () => {
  const session = createSessionFiles();
  const ask = (ledger: ReturnType<typeof session.forAgent>, digest: string, whole = false) =>
    refuseBase({ path: "a.ts", realPath: "/p/a.ts", digest, ledger, agentId: "me", whole });

  test("not read, read, read in part, changed on disk, changed by another agent", () => {
    const ledger = session.forAgent();
    expect(ask(ledger, "d1")).toContain("was not read");
    ledger.noteSeen("/p/a.ts", { digest: "d1", mtimeMs: 1, partial: true });
    expect(ask(ledger, "d1")).toBeUndefined();
    expect(ask(ledger, "d1", true)).toContain("Only a part");
    expect(ask(ledger, "d2")).toContain("changed on disk");
    session.forAgent().noteChange("/p/a.ts", { agent: { id: "7", name: "reviewer" }, digest: "d2" });
    expect(ask(ledger, "d2")).toContain("changed by the agent reviewer (7)");
    expect(ask(ledger, "d3")).toContain("changed on disk");
  });
});

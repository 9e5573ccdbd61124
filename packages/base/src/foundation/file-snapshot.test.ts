import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cachedUntilChanged, createFileSnapshot, type FileSnapshot } from "./file-snapshot.ts";

let root: string;
let at: (name: string) => string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "retinue-snapshot-"));
  at = (name) => join(root, name);
  mkdirSync(at("folder"));
  writeFileSync(at("folder/a.md"), "one");
  symlinkSync("folder", at("link"));
  symlinkSync("nowhere", at("dangling"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** By this clock nothing changed lately. */
const later = (): number => Date.now() + 5_000;

function noted(): FileSnapshot {
  const snapshot = createFileSnapshot(later);
  for (const name of ["folder", "folder/a.md", "link", "dangling", "missing.json", "folder/a.md/below"])
    snapshot.add([at(name)]);
  return snapshot;
}

describe("[DEF-11] what was read holds until it changes", () => {
  test("nothing changed", async () => {
    expect(await noted().isUnchanged()).toBe(true);
  });

  test.each<[string, () => void]>([
    ["other text of the same size", () => writeFileSync(at("folder/a.md"), "two")],
    [
      "other text of the same size under the old time",
      () => {
        const old = new Date(1_000_000);
        writeFileSync(at("folder/a.md"), "two");
        utimesSync(at("folder/a.md"), old, old);
      },
    ],
    ["a new file in a folder", () => writeFileSync(at("folder/b.md"), "")],
    ["a new folder in a folder", () => mkdirSync(at("folder/inner"))],
    ["a removed file", () => unlinkSync(at("folder/a.md"))],
    ["a file that was not there", () => writeFileSync(at("missing.json"), "{}")],
    ["a link that leads somewhere else", () => replaceLink("link", ".")],
    ["a link that begins to lead somewhere", () => mkdirSync(at("nowhere"))],
    ["a folder in the place of another", () => renameSync(at("folder"), at("old"))],
    ["other rights", () => chmodSync(at("folder/a.md"), 0o600)],
  ])("%s is seen", async (_title, change) => {
    const snapshot = noted();
    change();
    expect(await snapshot.isUnchanged()).toBe(false);
  });

  test("two changes that the clock of the file system cannot tell apart are both seen", async () => {
    writeFileSync(at("folder/a.md"), "two");
    const snapshot = createFileSnapshot();
    snapshot.add([at("folder/a.md")]);
    writeFileSync(at("folder/a.md"), "six");
    expect(await snapshot.isUnchanged()).toBe(false);
  });

  test("a change between two looks of one reading is seen", async () => {
    const snapshot = createFileSnapshot(later);
    snapshot.add([at("folder/a.md")]);
    writeFileSync(at("folder/a.md"), "other");
    snapshot.add([at("folder/a.md")]);
    expect(await snapshot.isUnchanged()).toBe(false);
  });

  test("where only the kind or the place of a path counts, its content may change", async () => {
    const snapshot = createFileSnapshot(later);
    snapshot.add([at("folder")], "kind");
    snapshot.add([at("link")], "place");
    writeFileSync(at("folder/b.md"), "");
    expect(await snapshot.isUnchanged()).toBe(true);
    replaceLink("link", ".");
    expect(await snapshot.isUnchanged()).toBe(false);
  });
});

function replaceLink(name: string, target: string): void {
  unlinkSync(at(name));
  symlinkSync(target, at(name));
}

/** A read that ends when it is allowed to, and counts. */
function createSource() {
  const pending: PromiseWithResolvers<void>[] = [];
  let state = "first";
  let count = 0;
  async function begun(): Promise<PromiseWithResolvers<void>> {
    for (;;) {
      const first = pending.shift();
      if (first !== undefined) return first;
      await Promise.resolve();
    }
  }
  return {
    set: (value: string) => {
      state = value;
    },
    count: () => count,
    end: async () => (await begun()).resolve(),
    fail: async () => (await begun()).reject(new Error("unreadable")),
    ...cachedUntilChanged(async (snapshot) => {
      count += 1;
      const seen = state;
      const gate = Promise.withResolvers<void>();
      pending.push(gate);
      await gate.promise;
      // Never twice the same, so nothing is kept.
      await snapshot.ask(async () => String(Math.random()));
      return seen;
    }),
  };
}

describe("callers share readings", () => {
  test("callers that ask during a read share the next one, which sees what was written before they asked", async () => {
    const source = createSource();
    const early = source.read();
    source.set("second");
    const late = [source.read(), source.read(), source.read()];
    await source.end();
    expect(await early).toBe("first");
    await source.end();
    expect(await Promise.all(late)).toEqual(["second", "second", "second"]);
    expect(source.count()).toBe(2);
  });

  test("a read that failed is not kept", async () => {
    const source = createSource();
    const early = source.read();
    const late = source.read();
    await source.fail();
    await expect(early).rejects.toThrow("unreadable");
    await source.end();
    expect(await late).toBe("first");
    const again = source.read();
    await source.end();
    expect(await again).toBe("first");
    expect(source.count()).toBe(3);
  });
});

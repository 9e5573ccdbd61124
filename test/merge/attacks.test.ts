import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ScriptedStep } from "@retinue/testing/script.ts";
import { expect, test } from "vitest";
import { change, createMergeStage, directoryOf, git, isResolver, readIfThere } from "./merge-stage.ts";

/** A resolver that does something in the scratch tree and says that it is done. */
const resolver = (act: (directory: string) => void): ScriptedStep => ({
  match: isResolver,
  times: "any",
  respond(request) {
    act(directoryOf(request));
    return "Resolved.";
  },
});

test("an ignored file of the person is not overwritten by one that an agent has committed [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n", ".gitignore": "secret.txt\n" });
  await stage.child(
    "one",
    { "b.txt": "b\n" },
    {
      also(at) {
        writeFileSync(join(at, "secret.txt"), "of the agent\n");
        git(at, "add", "-f", "secret.txt");
      },
    },
  );
  writeFileSync(join(stage.project, "secret.txt"), "mine\n");
  const queue = await stage.session.merge({ apply: true }).result;
  expect(readIfThere(join(stage.project, "secret.txt"))).toBe("mine\n");
  expect(queue.status).not.toBe("merged");
});

test("a repository that an agent has made inside its worktree is not lost [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  const one = await stage.child(
    "one",
    { "b.txt": "b\n", "inner/f.txt": "work\n" },
    {
      also(at) {
        git(join(at, "inner"), "init", "-q");
      },
    },
  );
  await stage.session.merge({ apply: true }).result;
  expect(readIfThere(join(one.path, "inner/f.txt")) ?? readIfThere(join(stage.project, "inner/f.txt"))).toBe(
    "work\n",
  );
});

test.each([
  "--assume-unchanged",
  "--skip-worktree",
])("an edit that git is told not to look at (%s) is not lost [MRG-1]", async (flag) => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  const one = await stage.child(
    "one",
    { "b.txt": "b\n" },
    {
      also(at) {
        git(at, "update-index", flag, "a.txt");
        writeFileSync(join(at, "a.txt"), "edited by the agent\n");
      },
    },
  );
  await stage.session.merge({ apply: true }).result;
  expect([readIfThere(join(one.path, "a.txt")), readIfThere(join(stage.project, "a.txt"))]).toContain(
    "edited by the agent\n",
  );
});

const conflicting = async (act: (directory: string) => void, files: Record<string, string> = {}) => {
  const stage = await createMergeStage({ "a.txt": "1\n2\n3\n", ...files }, { steps: [resolver(act)] });
  await stage.child("one", { "a.txt": "1\nof one\n3\n" });
  await stage.child("two", { "a.txt": "1\nof two\n3\n" });
  const queue = await stage.session.merge({ checks: [] }).result;
  return { stage, queue, states: queue.entries.map(({ state }) => state) };
};

test.each<[string, string]>([
  ["one side with a line of its own", "1\nof one\n3\n# merged\n"],
  ["the other side with a line of its own", "1\nof two\n3\n# merged\n"],
  ["neither side", "1\n2\n3\n"],
  ["nothing", ""],
])("a resolver that keeps %s is not taken [MRG-1]", async (_what, text) => {
  const { states } = await conflicting((at) => writeFileSync(join(at, "a.txt"), text));
  expect(states).toEqual(["integrated", "left"]);
});

test("a resolver that keeps both sides is taken [MRG-1]", async () => {
  const { states } = await conflicting((at) => writeFileSync(join(at, "a.txt"), "1\nof one\nof two\n3\n"));
  expect(states).toEqual(["integrated", "integrated"]);
});

test("conflict markers of another length are conflict markers [MRG-1]", async () => {
  const { states } = await conflicting((at) => git(at, "add", "-A"), {
    ".gitattributes": "*.txt conflict-marker-size=12\n",
  });
  expect(states).toEqual(["integrated", "left"]);
});

test("a resolver that edits outside, leaves, or moves things is not taken and touches nothing of the person [MRG-1]", async () => {
  const acts: ((at: string) => void)[] = [
    (at) => change(at, { "a.txt": "1\nof one\nof two\n3\n", "evil.txt": "x\n" }),
    (at) => {
      change(at, { "a.txt": "1\nof one\nof two\n3\n" });
      git(at, "switch", "-q", "-c", "other");
      git(at, "commit", "-qam", "x");
    },
    () => undefined,
    (at) => change(at, { "a.txt": null }),
    (at) => {
      change(at, { "a.txt": null });
      symlinkSync("/etc/passwd", join(at, "a.txt"));
    },
  ];
  for (const act of acts) {
    const { stage, states } = await conflicting(act);
    expect([String(act), states]).toEqual([String(act), ["integrated", "left"]]);
    expect(stage.git("status", "--short")).toBe("");
    expect(readFileSync(join(stage.project, "a.txt"), "utf8")).toBe("1\n2\n3\n");
  }
});

test("no hook of the repository runs [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  await stage.child("one", { "b.txt": "b\n" });
  const mark = join(stage.project, "..", "ran");
  for (const name of [
    "pre-commit",
    "post-commit",
    "post-merge",
    "post-checkout",
    "reference-transaction",
    "post-index-change",
    "pre-rebase",
    "post-rewrite",
    "commit-msg",
    "prepare-commit-msg",
    "pre-merge-commit",
  ]) {
    const file = join(stage.project, ".git/hooks", name);
    mkdirSync(join(stage.project, ".git/hooks"), { recursive: true });
    writeFileSync(file, `#!/bin/sh\necho ${name} >> '${mark}'\n`);
    chmodSync(file, 0o755);
  }
  writeFileSync(join(stage.project, ".git/fsmon"), `#!/bin/sh\necho fsmonitor >> '${mark}'\n`);
  chmodSync(join(stage.project, ".git/fsmon"), 0o755);
  stage.git("config", "core.fsmonitor", join(stage.project, ".git/fsmon"));
  expect((await stage.session.merge({ apply: true }).result).status).toBe("merged");
  expect(readIfThere(mark)).toBeUndefined();
});

test("line endings of the repository are kept [MRG-1]", async () => {
  const stage = await createMergeStage({
    "a.txt": "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n",
    ".gitattributes": "*.win eol=crlf\n",
    "b.win": "x\r\ny\r\n",
  });
  await stage.child("one", { "a.txt": "one\r\n2\r\n3\r\n4\r\n5\r\n6\r\n", "b.win": "x\r\ny\r\nz\r\n" });
  await stage.child("two", { "a.txt": "1\r\n2\r\n3\r\n4\r\n5\r\nsix\r\n" });
  expect((await stage.session.merge({ apply: true }).result).status).toBe("merged");
  expect(readFileSync(join(stage.project, "a.txt"), "utf8")).toBe("one\r\n2\r\n3\r\n4\r\n5\r\nsix\r\n");
  expect(readFileSync(join(stage.project, "b.win"), "utf8")).toBe("x\r\ny\r\nz\r\n");
});

test("a file against a folder, a link against a file, and a delete against an edit are left or whole [MRG-1]", async () => {
  const stage = await createMergeStage({ a: "a\n", b: "b\n", c: "c\n", "d e/ü.txt": "d\n" });
  await stage.child("one", { a: "one\n", b: "one\n", c: null, "d e/ü.txt": null });
  await stage.child(
    "two",
    { a: null, "d e/ü.txt": "edited\n" },
    {
      also: (at) => {
        change(at, { "a/inside.txt": "two\n", b: null });
        symlinkSync("c", join(at, "b"));
        appendFileSync(join(at, "c"), "two\n");
      },
    },
  );
  const queue = await stage.session.merge({ resolver: false }).result;
  expect(queue.entries.map(({ state }) => state)).toEqual(["integrated", "left"]);
  expect(stage.git("status", "--short")).toBe("");
  expect(existsSync(join(stage.project, "a/inside.txt"))).toBe(false);
});

test("two merges at once: one works, the other is refused or continues, nothing is doubled [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  await stage.child("one", { "b.txt": "b\n" });
  await stage.child("two", { "c.txt": "c\n" });
  const results = await Promise.allSettled([1, 2, 3].map(() => stage.session.merge({ apply: true }).result));
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
  expect(stage.git("rev-list", "--count", "HEAD")).toBe("3");
  expect(stage.git("status", "--short")).toBe("");
});

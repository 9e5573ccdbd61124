import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { describe, expect, test } from "vitest";
import { change, createMergeStage, git, readIfThere } from "./merge-stage.ts";

describe("a merge takes [MRG-1]", () => {
  test("nothing where the last branch of a session without a conversation is merged, and finds that session", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    await stage.child("one", { "b.txt": "one\n" });
    await stage.session.close();
    const { runtime } = stage.sample;
    expect((await runtime.merge(stage.session.id, { apply: true }).result).status).toBe("merged");
    for (const written of [stage.session.id, stage.session.id.slice(0, 8)])
      expect((await runtime.merge(written, { apply: true }).result).status).toBe("nothing");
    await expect(runtime.merge("no-such-session").result).rejects.toThrow("There is no session");
  });

  test("branches without worktrees, from where they began, also below uncommitted changes of the person", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    change(stage.project, { "mine.txt": "not committed\n" });
    const one = await stage.child("one", { "b.txt": "one\n" });
    const two = await stage.child("two", { "c.txt": "two\n" });
    git(one.path, "add", "-A");
    git(one.path, "commit", "-q", "-m", "my own words");
    git(stage.project, "worktree", "remove", "--force", one.path);
    git(two.path, "add", "-A");
    git(two.path, "commit", "-q", "-m", "two");
    git(stage.project, "worktree", "remove", "--force", two.path);
    // As after the record of the branch has expired.
    stage.git("reflog", "expire", "--expire=all", `refs/heads/${two.branch}`);
    const queue = await stage.session.merge({ apply: true }).result;
    expect(queue.entries.map(({ state, files }) => [state, files])).toEqual([
      ["merged", ["b.txt"]],
      ["merged", ["c.txt"]],
    ]);
    expect(stage.git("log", "--format=%s by %an")).toBe("two by Test\nmy own words by Test\nfirst by Test");
    expect(stage.git("status", "--short")).toBe("?? mine.txt");
    expect(stage.git("branch", "--format=%(refname:short)")).toBe("main");
  });

  test("renames, deletions, binary files, modes and names with line breaks", async () => {
    const bytes = Buffer.from([0, 1, 2, 255, 0, 10, 13]);
    const stage = await createMergeStage({
      "old name.txt": "1\n2\n3\n4\n5\n",
      "gone.txt": "x\n",
      "run.sh": "true\n",
    });
    await stage.child("one", { "old name.txt": null, "new ü.txt": "1\n2\n3\n4\n5\n", "gone.txt": null });
    await stage.child("two", { "old name.txt": "1\n2\n3\n4\nfive\n", "pic.bin": bytes });
    await stage.child(
      "three",
      { "odd\nname.txt": "odd\n" },
      { also: (at) => chmodSync(join(at, "run.sh"), 0o755) },
    );
    const queue = await stage.session.merge({ apply: true }).result;
    expect(queue.status).toBe("merged");
    expect(readFileSync(join(stage.project, "new ü.txt"), "utf8")).toBe("1\n2\n3\n4\nfive\n");
    expect(readFileSync(join(stage.project, "pic.bin"))).toEqual(bytes);
    expect(statSync(join(stage.project, "run.sh")).mode & 0o111).not.toBe(0);
    expect(readIfThere(join(stage.project, "odd\nname.txt"))).toBe("odd\n");
    expect([
      existsSync(join(stage.project, "gone.txt")),
      existsSync(join(stage.project, "old name.txt")),
    ]).toEqual([false, false]);
    expect(stage.git("status", "--short")).toBe("");
  });

  test("a branch of its own that an agent has made, and its later commits", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    const one = await stage.child(
      "one",
      { "b.txt": "1\n" },
      {
        also(at) {
          git(at, "switch", "-q", "-c", "feature");
          git(at, "add", "-A");
          git(at, "commit", "-q", "-m", "first step");
          change(at, { "c.txt": "2\n" });
        },
      },
    );
    const queue = await stage.session.merge().result;
    expect(queue.entries).toMatchObject([{ state: "integrated", files: ["b.txt", "c.txt"] }]);
    expect(stage.git("log", "-1", "--format=%B", queue.into).trim()).toBe("one\n\n- first step");
    expect(stage.git("rev-parse", one.branch)).toBe(stage.git("rev-parse", "feature"));
    change(one.path, { "c.txt": "2\n3\n" });
    const again = await stage.session.merge().result;
    expect(again.entries).toMatchObject([{ state: "integrated" }]);
    expect(stage.show(queue.into, "c.txt")).toBe("2\n3");
    expect(stage.git("rev-list", "--count", `main..${queue.into}`)).toBe("2");
  });

  test("only agents that ended well, and others when they are named", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    const one = await stage.child("one", { "b.txt": "1\n" }, { verify: "false" });
    const queue = await stage.session.merge().result;
    expect(queue.entries).toMatchObject([
      {
        state: "left",
        because: "failed",
        reason: "its own checks do not pass",
        commands: [`retinue merge --only ${one.id}`, `retinue merge --discard ${one.id}`],
      },
    ]);
    expect((await stage.session.merge({ only: [one.id] }).result).status).toBe("integrated");
  });

  test("no submodules and no worktree in the middle of a merge, and says so", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    await stage.child(
      "one",
      {},
      {
        also(at) {
          const head = git(at, "rev-parse", "HEAD");
          git(at, "update-index", "--add", "--cacheinfo", `160000,${head},vendor/lib`);
          mkdirSync(join(at, "vendor/lib"), { recursive: true });
          git(at, "commit", "-q", "-m", "a submodule");
        },
      },
    );
    await stage.child(
      "two",
      { "a.txt": "two\n" },
      {
        also(at) {
          git(at, "commit", "-qam", "two");
          git(at, "switch", "-qc", "other", "HEAD~1");
          change(at, { "a.txt": "other\n" });
          git(at, "commit", "-qam", "other");
          git(at, "switch", "-q", "-");
          try {
            git(at, "merge", "-q", "other");
          } catch {
            // A conflict, as wanted.
          }
        },
      },
    );
    const queue = await stage.session.merge().result;
    expect(queue.entries.map(({ because, reason }) => [because, reason])).toEqual([
      ["submodule", "it changes the submodule vendor/lib, and submodules have to be merged by hand"],
      [
        "unusable",
        expect.stringMatching(/^a merge in its worktree .* is not finished; finish or abort it there$/),
      ],
    ]);
  });
});

describe("the person's tree and branch [MRG-1]", () => {
  test("are left alone while anything there is changed, in the way, or without a branch", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    await stage.child("one", { "b.txt": "one\n" });
    change(stage.project, { "a.txt": "mine\n" });
    const dirty = await stage.session.merge({ apply: true }).result;
    expect(dirty).toMatchObject({
      status: "integrated",
      notApplied: {
        reason: "a.txt has uncommitted changes",
        commands: [`git merge --ff-only ${dirty.into}`],
      },
    });
    stage.git("checkout", "-q", "--", "a.txt");
    change(stage.project, { "b.txt": "mine, untracked\n" });
    const inTheWay = await stage.session.merge({ apply: true }).result;
    expect(inTheWay.notApplied?.reason).toBe(
      "b.txt is there but not tracked by git, and would be overwritten",
    );
    expect(readIfThere(join(stage.project, "b.txt"))).toBe("mine, untracked\n");
    // An ignored file is a file too.
    appendFileSync(join(stage.project, ".git/info/exclude"), "b.txt\n");
    expect((await stage.session.merge({ apply: true }).result).applied).toBeUndefined();
    expect(readIfThere(join(stage.project, "b.txt"))).toBe("mine, untracked\n");
    change(stage.project, { "b.txt": null });
    stage.git("switch", "-q", "--detach");
    expect((await stage.session.merge({ apply: true }).result).notApplied?.reason).toBe(
      "no branch is checked out here",
    );
    stage.git("switch", "-q", "main");
    expect(await stage.session.merge({ apply: true }).result).toMatchObject({
      status: "merged",
      applied: { branch: "main" },
    });
    expect(stage.git("status", "--short")).toBe("");
  });

  test("may move meanwhile: what was integrated is put on top again and checked again", async () => {
    const stage = await createMergeStage({ "a.txt": "1\n2\n3\n4\n5\n" });
    await stage.child("one", { "a.txt": "one\n2\n3\n4\n5\n" });
    const first = await stage.session.merge({ checks: "test -f a.txt" }).result;
    change(stage.project, { "a.txt": "1\n2\n3\n4\nfive\n" });
    stage.git("commit", "-qam", "mine");
    const steps: string[] = [];
    const merge = stage.session.merge({ apply: true, checks: "test -f a.txt" });
    for await (const { type } of merge.events) steps.push(type);
    expect(steps).toEqual(
      expect.arrayContaining([
        "rebuilding",
        "rebuilt",
        "taken",
        "checking",
        "checked",
        "advanced",
        "applied",
        "removed",
      ]),
    );
    expect((await merge.result).status).toBe("merged");
    expect(stage.show("main", "a.txt")).toBe("one\n2\n3\n4\nfive");
    expect(stage.git("log", "--format=%s")).toBe("one\nmine\nfirst");
    expect(stage.git("branch", "--list", first.into)).toBe("");
  });

  test("brought forward by hand, the next merge clears up, and leaves what has changed since", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    const one = await stage.child("one", { "b.txt": "one\n" });
    const two = await stage.child("two", { "c.txt": "two\n" });
    const { into } = await stage.session.merge().result;
    stage.git("merge", "-q", "--ff-only", into);
    // Its agent continues.
    change(two.path, { "d.txt": "later\n" });
    const queue = await stage.session.merge().result;
    expect(queue.entries.find(({ agent }) => agent === one.id)?.state).toBe("merged");
    expect(queue.entries.find(({ agent }) => agent === two.id)?.state).toBe("integrated");
    expect([existsSync(one.path), existsSync(two.path)]).toEqual([false, true]);
    expect(stage.show(queue.into, "d.txt")).toBe("later");
  });

  test("are not touched by the hooks of the repository, and one merge runs at a time", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    await stage.child("one", { "b.txt": "one\n" });
    for (const name of ["post-checkout", "pre-commit", "post-merge", "reference-transaction", "post-commit"])
      writeFileSync(
        join(stage.project, ".git/hooks", name),
        `#!/bin/sh\ntouch '${stage.project}/../hooked'\n`,
        { mode: 0o755 },
      );
    const lock = takeOwnerLock(join(stage.project, ".git/retinue-merge"));
    if (lock.type !== "taken") throw new Error("The lock is held.");
    await expect(stage.session.merge().result).rejects.toThrow(
      `Another merge of this repository is running (process ${process.pid}).`,
    );
    lock.lock.release();
    expect((await stage.session.merge({ apply: true }).result).status).toBe("merged");
    expect(existsSync(join(stage.project, "../hooked"))).toBe(false);
    expect(readdirSync(join(stage.project, ".claude/worktrees"))).toEqual([]);
  });

  test("a branch that is named is advanced where nobody has it checked out", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    stage.git("branch", "develop");
    const one = await stage.child("one", { "b.txt": "one\n" });
    expect((await stage.session.merge({ into: "develop" }).result).into).toBe("develop");
    expect(stage.show("develop", "b.txt")).toBe("one");
    expect(existsSync(one.path)).toBe(true);
    await expect(stage.session.merge({ into: "main" }).result).rejects.toThrow("is checked out in");
  });
});

describe("checks of a merge [MRG-1]", () => {
  test("keep what is red out, and try it again behind what it needs", async () => {
    const stage = await createMergeStage({ "need.txt": "0\n" });
    const user = await stage.child("user", { "uses.txt": "library.txt\n" });
    const library = await stage.child("library", { "library.txt": "l\n", "need.txt": "1\n" });
    const queue = await stage.session.merge({
      checks: "for f in $(cat uses.txt 2>/dev/null); do test -f $f || exit 3; done",
    }).result;
    expect(queue.entries.map(({ agent, state }) => [agent, state])).toEqual([
      [user.id, "integrated"],
      [library.id, "integrated"],
    ]);
    expect(stage.git("log", "--format=%s", `main..${queue.into}`)).toBe("user\nlibrary");
  });

  test("that fail without the changes as well are said to", async () => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    await stage.child("one", { "b.txt": "one\n" });
    const queue = await stage.session.merge({ checks: ["true", "exit 7"] }).result;
    expect(queue.entries[0]?.reason).toBe(
      "`exit 7` failed with exit code 7; it fails without these changes too",
    );
    expect(queue.status).toBe("partial");
    expect(stage.git("branch", "--list", queue.into)).toBe("");
  });

  test("from files of a folder that is not trusted do not run", async () => {
    const stage = await createMergeStage(
      {
        "a.txt": "a\n",
        ".claude/agents/fixer.md": "---\nname: fixer\ndescription: Fixes.\nverify: touch ../ran\n---\nFix.\n",
      },
      { options: { trusted: false } },
    );
    await stage.child("one", { "b.txt": "one\n" }, { agentType: "fixer" });
    // Its own check did not run either, so it is named.
    const queue = await stage.session.merge({ only: ["one"] }).result.catch((error: unknown) => error);
    expect(String(queue)).toContain("No kept branch of this session belongs to");
    const all = (await stage.sample.runtime.tasks.list()).map(({ id }) => id);
    const named = await stage.session.merge({ only: all }).result;
    expect(named.entries[0]).toMatchObject({ state: "left", because: "failed-check" });
    expect(named.entries[0]?.reason).toContain("it comes from a file of a folder that is not trusted");
    expect(existsSync(join(stage.project, ".claude/worktrees/ran"))).toBe(false);
  });
});

test("another branch that is checked out meanwhile is not brought forward [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  await stage.child("one", { "b.txt": "one\n" });
  const checks = `git -C '${stage.project}' checkout -q -b other`;
  const { status, notApplied } = await stage.session.merge({ apply: true, checks }).result;
  expect(status).toBe("integrated");
  expect(notApplied?.reason).toBe("other is checked out here now, and main was when the merge began");
  expect(notApplied?.commands[0]).toBe("git switch main");
  expect(stage.git("rev-parse", "other")).toBe(stage.git("rev-parse", "main"));
});

test("what kept an agent out at first is not said once it is in, and the way back is [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  const before = stage.git("rev-parse", "main");
  await stage.child("one", { "b.txt": "one\n" });
  await stage.child("two", { "c.txt": "two\n" });
  const checks = "test ! -f b.txt || test -f c.txt";
  const { status, entries, applied } = await stage.session.merge({ apply: true, checks }).result;
  expect(status).toBe("merged");
  expect(entries.map(({ state, because, reason }) => [state, because, reason])).toEqual([
    ["merged", undefined, undefined],
    ["merged", undefined, undefined],
  ]);
  expect(applied).toMatchObject({ from: before });
  stage.git("reset", "--quiet", "--keep", applied?.from ?? "");
  expect(stage.git("rev-parse", "main")).toBe(before);
  expect(stage.git("status", "--short")).toBe("");
});

test("@ is no branch to integrate into [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  await stage.child("one", { "b.txt": "one\n" });
  await expect(stage.session.merge({ into: "@" }).result).rejects.toThrow("cannot be the name of a branch");
});

describe("what was integrated without a check that counts now [MRG-1]", () => {
  const integrateUnchecked = async (into?: string) => {
    const stage = await createMergeStage({ "a.txt": "a\n" });
    await stage.child("one", { "b.txt": "good\n" });
    await stage.child("two", { "c.txt": "bad\n" });
    const { status } = await stage.session.merge({ checks: [], ...(into === undefined ? {} : { into }) })
      .result;
    expect(status).toBe("integrated");
    return stage;
  };
  const checks = "! grep -q bad c.txt";

  test("is checked before the person's branch is brought forward, each commit for itself", async () => {
    const stage = await integrateUnchecked();
    const { entries, applied, into } = await stage.session.merge({ checks, apply: true }).result;
    expect(entries.map(({ description, state }) => [description, state])).toEqual([
      ["one", "integrated"],
      ["two", "left"],
    ]);
    expect(applied).toBeUndefined();
    expect(stage.git("log", "--format=%s", into)).toBe("one\nfirst");
    // The same checks again change nothing, and none at all keep what has passed.
    const tip = stage.git("rev-parse", into);
    expect((await stage.session.merge({ checks }).result).status).toBe("partial");
    expect((await stage.session.merge({ checks: [], only: [entries[0]?.agent ?? ""] }).result).status).toBe(
      "integrated",
    );
    expect(stage.git("rev-parse", into)).toBe(tip);
  });

  test("keeps a branch of the person's own from being applied", async () => {
    const stage = await integrateUnchecked("next");
    const { applied, notApplied } = await stage.session.merge({ checks, into: "next", apply: true }).result;
    expect(applied).toBeUndefined();
    expect(notApplied?.reason).toContain("integrated without the check");
    expect(stage.git("log", "--format=%s", "main")).toBe("first");
  });
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedStep } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { change, createMergeStage, directoryOf, git, isResolver } from "./merge-stage.ts";
import { keepBoth } from "./seeded-set.ts";

const resolving = (path: string, resolve: (text: string) => string): ScriptedStep => ({
  match: isResolver,
  respond(request) {
    const file = join(directoryOf(request), path);
    change(directoryOf(request), { [path]: resolve(readFileSync(file, "utf8")) });
    return "resolved";
  },
});

describe("a conflict [MRG-1]", () => {
  test("goes to the resolver with both sides, both tasks and both receipts, and its result is checked", async () => {
    const requests: ModelRequest[] = [];
    const stage = await createMergeStage(
      { "list.txt": "a\nb\n" },
      {
        steps: [
          {
            match: isResolver,
            respond(request) {
              requests.push(request);
              return {
                calls: [{ name: "Read", input: { file_path: "list.txt" } }],
              };
            },
          },
          {
            match: isResolver,
            calls: [
              {
                name: "Edit",
                input: {
                  file_path: "list.txt",
                  old_string: "<<<<<<< HEAD\none\n",
                  new_string: "one\n",
                },
              },
            ],
          },
          resolving("list.txt", (text) =>
            text.replace(/^\|{7}[\s\S]*?^={7}\n/m, "").replace(/^>{7}.*\n/m, ""),
          ),
        ],
      },
    );
    const one = await stage.child("one", { "list.txt": "a\nb\none\n" }, { verify: "grep -q one list.txt" });
    const two = await stage.child("two", { "list.txt": "a\nb\ntwo\n" });
    const queue = await stage.session.merge({ checks: "grep -q one list.txt" }).result;
    expect(queue.entries).toMatchObject([
      { agent: one.id, state: "integrated" },
      { agent: two.id, state: "integrated", resolver: "merge-resolver" },
    ]);
    expect(stage.show(queue.into, "list.txt")).toBe("a\nb\none\ntwo");
    const [request] = requests;
    const task = JSON.stringify(request?.messages[0]);
    for (const part of [
      "<task one>",
      "<task two>",
      "+one",
      "+two",
      "Result: verified; 1 of 1",
      "Result: unverified",
      "list.txt: both changed it",
    ])
      expect(task).toContain(part);
    expect(request?.tools.map(({ name }) => name).sort()).toEqual(["Bash", "Edit", "Read"]);
  });

  test("that is not resolved is left with commands to go on by hand, and is given to the resolver once", async () => {
    const stage = await createMergeStage(
      { "list.txt": "a\n" },
      { steps: [{ match: isResolver, text: "They contradict each other." }] },
    );
    await stage.child("one", { "list.txt": "one\n" });
    const two = await stage.child("two", { "list.txt": "two\n" });
    const first = await stage.session.merge().result;
    expect(first).toMatchObject({
      status: "partial",
      entries: [
        { state: "integrated" },
        {
          agent: two.id,
          state: "left",
          because: "conflict",
          reason:
            "it conflicts with the integration branch in list.txt; merge-resolver did not resolve it: list.txt still has conflict markers",
          commands: [
            `git switch ${first.into}`,
            expect.stringMatching(/^git cherry-pick [0-9a-f]{12}\.\.retinue\/general-purpose-/),
            `retinue merge --discard ${two.id}`,
          ],
        },
      ],
    });
    // The script has no second answer of the resolver, so asking again would fail the test.
    const second = await stage.session.merge({ apply: true }).result;
    expect(second.entries[1]).toMatchObject({
      state: "left",
      reason: expect.stringContaining("already tried to resolve it"),
    });
    expect(second.notApplied?.reason).toBe(`1 of the agents' changes is not in ${first.into}`);
    expect(stage.show("HEAD", "list.txt")).toBe("a");
    expect(stage.show(two.branch, "list.txt")).toBe("two");
    const discarded = await stage.session.merge({ discard: [two.id] }).result;
    expect(discarded.entries).toMatchObject([
      { state: "discarded", tip: expect.stringMatching(/^[0-9a-f]{40}$/) },
    ]);
    expect(stage.show(discarded.entries[0]?.tip ?? "", "list.txt")).toBe("two");
    expect(await stage.session.merge({ apply: true }).result).toMatchObject({ status: "merged" });
    expect(stage.show("HEAD", "list.txt")).toBe("one");
  });

  test("is not resolved by changing other files, by leaving markers, or by a commit", async () => {
    const stage = await createMergeStage(
      { "list.txt": "a\n", "other.txt": "o\n" },
      {
        steps: [
          {
            match: isResolver,
            respond(request) {
              change(directoryOf(request), { "list.txt": "one\ntwo\n", "other.txt": "changed\n" });
              return "resolved";
            },
          },
        ],
      },
    );
    await stage.child("one", { "list.txt": "one\n" });
    await stage.child("two", { "list.txt": "two\n" });
    const queue = await stage.session.merge().result;
    expect(queue.entries[1]?.reason).toContain("it changed other.txt, which neither side has touched");
    expect(stage.show(queue.into, "other.txt")).toBe("o");
  });

  test("is not resolved by keeping what one side has alone", async () => {
    const stage = await createMergeStage(
      { "list.txt": "a\n" },
      { steps: [resolving("list.txt", () => "a\none\n"), resolving("list.txt", () => "a\nthree\n")] },
    );
    await stage.child("one", { "list.txt": "a\none\n" });
    await stage.child("two", { "list.txt": "a\ntwo\n" });
    await stage.child("three", { "list.txt": "a\nthree\n" });
    const queue = await stage.session.merge().result;
    expect(queue.entries.map(({ state }) => state)).toEqual(["integrated", "left", "left"]);
    for (const { reason } of queue.entries.slice(1))
      expect(reason).toContain("it keeps only one side's version of list.txt");
    expect(stage.show(queue.into, "list.txt")).toBe("a\none");
  });

  const numbered = Array.from({ length: 30 }, (_, at) => `line ${at}\n`);
  const withLines = (more: Readonly<Record<number, string>>) =>
    numbered.flatMap((line, at) => [...(more[at] === undefined ? [] : [`${more[at]}\n`]), line]).join("");
  test.each([
    ["a hunk of the agent in the same file", "list.txt", "two, below\n", 'in list.txt it drops "two, below"'],
    ["a hunk of what is there", "list.txt", "one, below\n", 'in list.txt it drops "one, below"'],
    [
      "all of another file",
      "other.txt",
      "two, elsewhere\n",
      "in other.txt, which does not conflict, it reverts what one side has done",
    ],
    [
      "a part of a new file",
      "new.txt",
      "two, new\n",
      'in new.txt, which does not conflict, it drops "two, new"',
    ],
  ])("is not resolved by losing %s", async (_what, path, lost, reason) => {
    const stage = await createMergeStage(
      { "list.txt": withLines({}), "other.txt": "o\n" },
      {
        steps: [
          {
            match: isResolver,
            respond(request) {
              const at = directoryOf(request);
              const read = (name: string) => readFileSync(join(at, name), "utf8");
              change(at, { "list.txt": keepBoth(read("list.txt")) });
              change(at, { [path]: read(path).replace(lost, "") });
              return "resolved";
            },
          },
        ],
      },
    );
    await stage.child("one", { "list.txt": withLines({ 3: "one", 20: "one, below" }) });
    await stage.child("two", {
      "list.txt": withLines({ 3: "two", 25: "two, below" }),
      "other.txt": "o\ntwo, elsewhere\n",
      "new.txt": "first\ntwo, new\n",
    });
    const { entries } = await stage.session.merge().result;
    expect(entries[1]).toMatchObject({ state: "left", reason: expect.stringContaining(reason) });
  });

  test("between a change and a deletion is decided with git, in the scratch tree alone", async () => {
    const stage = await createMergeStage(
      { "old.txt": "1\n2\n3\n", "keep.txt": "k\n" },
      {
        steps: [
          { match: isResolver, calls: [{ name: "Bash", input: { command: "git rm -q old.txt" } }] },
          { match: isResolver, text: "resolved" },
        ],
        options: { permissionMode: "default" },
      },
    );
    await stage.child("one", { "old.txt": null });
    await stage.child("two", { "old.txt": "1\n2\nthree\n", "new.txt": "n\n" });
    const runtime = stage.sample.runtime;
    const queue = await runtime.merge(stage.session.id).result;
    expect(queue.entries.map(({ state, reason }) => [state, reason])).toEqual([
      ["integrated", undefined],
      ["integrated", "conflict in old.txt"],
    ]);
    expect(stage.git("ls-tree", "--name-only", queue.into)).toBe("keep.txt\nnew.txt");
  });

  test("is not resolved by taking nothing of what the agent has done", async () => {
    const stage = await createMergeStage(
      { "old.txt": "1\n2\n3\n" },
      {
        steps: [
          {
            match: isResolver,
            respond(request) {
              git(directoryOf(request), "add", "old.txt");
              return "resolved";
            },
          },
        ],
      },
    );
    await stage.child("one", { "old.txt": "1\n2\nthree\n" });
    const two = await stage.child("two", { "old.txt": null });
    const { entries } = await stage.session.merge({ apply: true }).result;
    const reason = expect.stringContaining("it contains none of the agent's changes");
    expect(entries[1]).toMatchObject({ state: "left", reason });
    expect(stage.git("branch", "--format=%(refname:short)")).toContain(two.branch);
  });

  test("goes to a definition of the person's under the same name, or to none", async () => {
    const stage = await createMergeStage(
      {
        "list.txt": "a\n",
        ".claude/agents/merge-resolver.md":
          "---\nname: merge-resolver\ndescription: Mine.\ntools: Read, Write\n---\nMy own resolver.\n",
      },
      {
        steps: [
          {
            match: (request: ModelRequest) =>
              isResolver(request) && JSON.stringify(request.system).includes("My own resolver."),
            respond(request) {
              change(directoryOf(request), { "list.txt": "one\ntwo\n" });
              return "resolved";
            },
          },
        ],
      },
    );
    await stage.child("one", { "list.txt": "one\n" });
    await stage.child("two", { "list.txt": "two\n" });
    const without = await stage.session.merge({ resolver: false }).result;
    expect(without.entries[1]).toMatchObject({
      state: "left",
      reason: "it conflicts with the integration branch in list.txt",
    });
    const queue = await stage.session.merge().result;
    expect(queue.status).toBe("integrated");
    expect(stage.show(queue.into, "list.txt")).toBe("one\ntwo");
  });
});

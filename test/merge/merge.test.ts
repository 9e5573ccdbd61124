import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { openTree } from "@retinue/core/kernel/agent-tree.ts";
import { createHostedRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { expect, onTestFinished, test } from "vitest";
import { change, createMergeStage } from "./merge-stage.ts";

test("children are integrated one commit each, and the person's branch is brought forward when asked for [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n", "b.txt": "b\n" });
  const one = await stage.child("one", { "a.txt": "one\n2\n3\n4\n5\n6\n7\n8\n" });
  const two = await stage.child("two", { "a.txt": "1\n2\n3\n4\n5\n6\n7\ntwo\n" });
  const three = await stage.child("three", { "c.txt": "three\n" });
  const head = stage.git("rev-parse", "HEAD");
  const queue = await stage.session.merge({ checks: "test -f a.txt" }).result;
  expect(queue.entries.map(({ agent, state }) => [agent, state])).toEqual([
    [three.id, "integrated"],
    [one.id, "integrated"],
    [two.id, "integrated"],
  ]);
  expect(queue.status).toBe("integrated");
  expect(stage.git("rev-parse", "HEAD")).toBe(head);
  expect(stage.git("status", "--short")).toBe("");
  expect(stage.show(queue.into, "a.txt")).toBe("one\n2\n3\n4\n5\n6\n7\ntwo");
  expect(stage.git("rev-list", "--count", `main..${queue.into}`)).toBe("3");
  expect(stage.git("log", "--format=%s %an", `main..${queue.into}`)).toBe(
    "two Person\none Person\nthree Person",
  );
  expect(existsSync(one.path)).toBe(true);

  const applied = await stage.session.merge({ apply: true, checks: "test -f a.txt" }).result;
  expect(applied.status).toBe("merged");
  expect(applied.entries.map(({ state }) => state)).toEqual(["merged", "merged", "merged"]);
  expect(stage.show("HEAD", "c.txt")).toBe("three");
  expect(stage.git("status", "--short")).toBe("");
  expect(stage.git("branch", "--format=%(refname:short)")).toBe("main");
  expect([one, two, three].map(({ path }) => existsSync(path))).toEqual([false, false, false]);
});

test("a run with `integrate` merges at its end what its children have left [MRG-1]", async () => {
  const stage = await createMergeStage(
    { "a.txt": "a\n" },
    {
      steps: [
        {
          match: "You are an engineer",
          calls: [
            {
              name: "Agent",
              input: {
                description: "one",
                prompt: "<task one>",
                subagent_type: "general-purpose",
                isolation: "worktree",
              },
            },
          ],
        },
        { match: "You are an engineer", text: "Both are done." },
      ],
    },
  );
  stage.works.set("one", (directory) => change(directory, { "b.txt": "one\n" }));
  const result = await stage.session.run("Begin.", { integrate: { checks: "test -f b.txt", apply: true } })
    .result;
  expect(result).toMatchObject({
    status: "completed",
    merge: { status: "merged", entries: [{ state: "merged" }] },
  });
  expect(stage.show("main", "b.txt")).toBe("one");
  expect(() => stage.session.run("x", { integrate: { dryRun: true } as never })).toThrow(
    "not an option of a merge behind a run",
  );
});

test("a host asks for a merge by an op and reads the queue from events [MRG-1]", async () => {
  const stage = await createMergeStage({ "a.txt": "a\n" });
  await stage.child("one", { "b.txt": "one\n" });
  await stage.session.close();
  const { project, sample } = { project: stage.project, sample: stage.sample };
  const runtime = createHostedRuntime({
    cwd: project,
    home: sample.home,
    env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0" },
    model: createScriptedModel(["Hello."]),
    transcripts: true,
    trusted: true,
  });
  onTestFinished(() => runtime.close());
  const tree = await openTree({ runtime, session: { sessionId: randomUUID() } });
  const seen: string[] = [];
  tree.onEvent((event) => {
    if (event.type === "merge-stepped")
      seen.push(`${event.step?.type} ${event.queue.entries.map(({ state }) => state)}`);
  });
  expect(await tree.submit("main", { type: "merge", apply: true })).toEqual({ text: "nothing" });
  expect(seen).toEqual(["started ", "ended "]);
  await tree.close();
});

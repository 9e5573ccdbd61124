import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { RunEvent } from "../conversation/run-event.ts";
import { createTaskManager, type TaskRun } from "./task-manager.ts";
import { controlFiles, leaveOp, watchControl, watchMain } from "./watch-control.ts";

/** As every version has written it. */
const stopRequest = '{"version":1,"action":"stop"}\n';

function createControlled() {
  const directory = mkdtempSync(join(tmpdir(), "retinue-control-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const files = controlFiles({ directory });
  const tasks = watchControl(createTaskManager({ maxRunning: 10, now: () => 0 }), files);
  onTestFinished(() => tasks[Symbol.asyncDispose]());
  return { directory, files, tasks };
}

function endless(id: string): TaskRun {
  return {
    start: { id, agentType: "x", description: "x", background: true, parentId: "main" },
    async *events(_line, signal): AsyncGenerator<RunEvent> {
      yield { type: "turn-started", turn: 1 };
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    },
  };
}

test("a request of the same user stops that child and no other [CLI-3]", async () => {
  const { files, tasks } = createControlled();
  for (const id of ["a1", "a2"]) tasks.start(endless(id));
  leaveOp(files, { type: "stop", agent: "a1" });
  expect(await tasks.ended("a1")).toMatchObject({ status: "stopped", ending: { reason: "stopped-by-user" } });
  expect(tasks.get("a2")?.status).toBe("running");
  expect(existsSync(files.request("a1"))).toBe(false);
});

test("a request that others could have written, a link and a strange text stop nothing", async () => {
  const { directory, files, tasks } = createControlled();
  const ids = ["a1", "a2", "a3", "a4"];
  for (const id of ids) tasks.start(endless(id));
  const elsewhere = join(directory, "elsewhere");
  writeFileSync(elsewhere, stopRequest, { mode: 0o600 });
  symlinkSync(elsewhere, files.request("a1"));
  writeFileSync(files.request("a2"), '{"version":1,"action":"explode"}', { mode: 0o600 });
  writeFileSync(`${elsewhere}.open`, stopRequest);
  chmodSync(`${elsewhere}.open`, 0o666);
  renameSync(`${elsewhere}.open`, files.request("a3"));
  leaveOp(files, { type: "stop", agent: "a4" });
  await tasks.ended("a4");
  expect(ids.map((id) => tasks.get(id)?.status)).toEqual(["running", "running", "running", "stopped"]);
});

test("a request left behind by an earlier run does not stop the next one", () => {
  const { files, tasks } = createControlled();
  leaveOp(files, { type: "stop", agent: "a1" });
  tasks.start(endless("a1"));
  expect(existsSync(files.request("a1"))).toBe(false);
});

test("a request moves a child to the background, and frees its parent [STU-2]", async () => {
  const { files, tasks } = createControlled();
  const run = endless("a1");
  tasks.start({ ...run, start: { ...run.start, background: false } });
  const waiting = tasks.wait("a1", { signal: new AbortController().signal });
  leaveOp(files, { type: "background", agent: "a1" });
  expect(await waiting).toMatchObject({ background: true, status: "running" });
});

test("while it works, the main agent takes messages and a stop, which watchers of children leave alone [STU-2]", async () => {
  const { files, tasks } = createControlled();
  tasks.start(endless("a1"));
  const main = watchMain(files);
  leaveOp(files, { type: "stop", agent: "main" });
  using control = main.begin();
  const message = leaveOp(files, { type: "message", agent: "main", text: "Look left." });
  await expect.poll(() => existsSync(message.file)).toBe(false);
  expect(main.takeMessages()).toEqual([{ role: "user", content: [{ type: "text", text: "Look left." }] }]);
  expect(control.signal.aborted).toBe(false);
  leaveOp(files, { type: "stop", agent: "main" });
  await expect.poll(() => control.signal.aborted).toBe(true);
  expect(control.signal.reason).toMatchObject({ code: "stopped-by-user" });
  expect(tasks.get("a1")?.status).toBe("running");
});

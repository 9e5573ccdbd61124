import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { workflowFiles } from "../journal/session-files.ts";
import { openJournal } from "./workflow-journal.ts";

const sessionId = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const runId = "wf_12345678-abc";

function place() {
  const transcripts = mkdtempSync(join(tmpdir(), "journal-"));
  onTestFinished(() => rmSync(transcripts, { recursive: true, force: true }));
  return { transcripts, sessionId };
}

it("a line that a crash has cut off costs only itself [WFL-3]", async () => {
  const at = place();
  const first = await openJournal(runId, at);
  first.append({ type: "started", key: "c1:a", agentId: "x", label: "a" });
  first.append({ type: "result", key: "c1:a", agentId: "x", result: "A" });
  first.append({ type: "started", key: "c1:b", agentId: "y", label: "b" });
  first.close();
  const { journal } = workflowFiles(at.transcripts, sessionId, runId);
  appendFileSync(journal, '{"type":"result","key":"c1:b","agen');
  const second = await openJournal(runId, at);
  expect([...second.finished]).toEqual([["c1:a", { agentId: "x", result: "A" }]]);
  expect([...second.started]).toEqual([["c1:b", { agentId: "y", sessionId }]]);
  second.append({ type: "result", key: "c1:b", agentId: "y", result: "B" });
  second.close();
  const third = await openJournal(runId, at);
  expect([...third.finished.keys()]).toEqual(["c1:a", "c1:b"]);
  third.close();
  third.append({ type: "failed", key: "c1:a", error: "late" });
  expect(readFileSync(journal, "utf8")).not.toContain("late");
});

it("one process works on a run at a time [WFL-3]", async () => {
  const at = place();
  const first = await openJournal(runId, at);
  await expect(openJournal(runId, at)).rejects.toMatchObject({ code: "workflow-running" });
  first.close();
  (await openJournal(runId, at)).close();
});

it("a journal that is there but cannot be read does not pass for one without steps [WFL-3]", async () => {
  const at = place();
  (await openJournal(runId, at)).close();
  const { journal } = workflowFiles(at.transcripts, sessionId, runId);
  rmSync(journal);
  mkdirSync(journal);
  const other = { ...at, sessionId: "4f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00" };
  await expect(openJournal(runId, other)).rejects.toMatchObject({
    message: expect.stringContaining(journal),
  });
});

import { expect, test } from "vitest";
import { foldWorkflow, type WorkflowChange, type WorkflowRunState } from "../../protocol/workflow-state.ts";
import { runFileOf } from "../../workflows/workflow-journal.ts";
import type { FoundRun } from "../workflows/find-runs.ts";
import { workflowView } from "./workflow-view.ts";

const begun: WorkflowRunState = {
  runId: "wf_1a2b3c4d-5e6",
  taskId: "w1",
  sessionId: "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00",
  name: "repaint",
  description: "Repaints every shelf",
  script: "",
  defaultModel: "m",
  status: "running",
  startedAt: 1000,
  phases: [],
  steps: [],
  logs: [],
  failures: [],
};

function found(changes: readonly WorkflowChange[], status: FoundRun["status"] = "running"): FoundRun {
  const state = changes.reduce(foldWorkflow, begun);
  const { runId, sessionId, name, startedAt, script } = state;
  return {
    ...{ runId, sessionId, name, startedAt, script, status },
    ...{ agents: state.steps.length, done: 0, costUsd: 0, tokens: 0 },
    // As it is after it was written and read.
    record: JSON.parse(JSON.stringify(runFileOf(state))),
  };
}

const phase = (index: number, title: string, stepsBefore: number): WorkflowChange => ({
  type: "phase",
  phase: { index, title, stepsBefore, detail: `about ${title}` },
});
const step = (index: number, more: object): WorkflowChange => ({
  type: "step",
  step: { index, label: `step ${index}`, queuedAt: 1000, lastSignAt: 4000, ...more },
});
const changes = [
  step(1, { state: "done", result: "before all phases" }),
  phase(1, "Measure", 1),
  step(2, { phase: "Measure", state: "done", taken: true, startedAt: 2000, result: "Eleven." }),
  step(3, { phase: "Measure", state: "done", why: "asked to run again", startedAt: 2000, endedAt: 5000 }),
  phase(2, "Paint", 3),
  step(4, { phase: "Paint", state: "running", startedAt: 2000, agentId: "wf_1a2b3c4d-5e6-a1" }),
  step(5, { phase: "Paint", state: "failed", error: "No paint.", startedAt: 2000, endedAt: 3000 }),
  step(6, { phase: "Paint", state: "skipped", error: "It was skipped.", startedAt: 2000, endedAt: 3000 }),
  step(7, { phase: "Paint", state: "waiting" }),
];

test("a run is shown by phase, each step with its state and why it was not taken [WFL-5]", () => {
  const { phases, endedAt, description } = workflowView(found(changes));
  expect(endedAt).toBeUndefined();
  expect(description).toBe("Repaints every shelf");
  expect(phases.map(({ title, detail, steps }) => [title, detail, steps.map(({ state }) => state)])).toEqual([
    ["", undefined, ["done"]],
    ["Measure", "about Measure", ["taken", "done"]],
    ["Paint", "about Paint", ["running", "failed", "skipped", "waiting"]],
  ]);
  expect(phases[1]?.steps[1]).toMatchObject({ why: "asked to run again", durationMs: 3000 });
  expect(phases[2]?.steps[1]).toMatchObject({ error: "No paint." });
});

test("of a run whose process has ended, steps at work are cut off and others not started [WFL-5]", () => {
  const { phases, endedAt } = workflowView(found(changes, "interrupted"));
  expect(phases[2]?.steps.map(({ state }) => state)).toEqual(["cut-off", "failed", "skipped", "not-begun"]);
  expect(endedAt).toBe(4000);
});

test.each([
  [{}],
  [{ workflowProgress: "no list", phases: 3, logs: { a: 1 }, error: 4, durationMs: "long" }],
  [{ workflowProgress: [null, { type: "workflow_agent" }, { type: "workflow_phase" }], logs: [null, {}] }],
  [JSON.parse('{"workflowProgress":[{"type":"workflow_agent","phaseTitle":"__proto__","label":{}}]}')],
])("a file that another program wrote is shown as far as it can be read: %j [WFL-5]", (record) => {
  const view = workflowView({ ...found([]), status: "failed", record });
  expect(view.phases.flatMap(({ steps }) => steps).every(({ label }) => label === "")).toBe(true);
  expect(JSON.parse(JSON.stringify(view))).toEqual(view);
});

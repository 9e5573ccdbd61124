import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { bounded } from "../../inspection/read-answer.ts";
import type { FoundRun } from "../workflows/find-runs.ts";

/** A run of a workflow in a line. */
export interface WorkflowSummary extends Pick<FoundRun, "runId" | "name" | "status" | "startedAt"> {
  readonly steps: number;
  /** Done by an agent, or taken from the journal. */
  readonly done: number;
}

/** A run of a workflow as people follow it: its steps by phase. Times are milliseconds since 1970. */
export interface WorkflowView extends WorkflowSummary, Pick<FoundRun, "costUsd" | "tokens" | "scriptPath"> {
  readonly description: string;
  /** Of its last sign of life; absent while it runs. */
  readonly endedAt?: number;
  readonly phases: readonly WorkflowPhaseView[];
  /** The newest lines that the script wrote. */
  readonly logs: readonly string[];
  readonly error?: string;
  readonly errorLine?: number;
  /** The beginning of what the script returned. */
  readonly result?: string;
}

export interface WorkflowPhaseView {
  /** Empty for steps before the first phase. */
  readonly title: string;
  readonly detail?: string;
  /** Another workflow within this one. */
  readonly isChild?: true;
  readonly steps: readonly WorkflowStepView[];
}

/**
 * `taken`: its result was in the journal, so no agent worked; `cut-off`: its run ended while it was at work, and the next run
 * continues it.
 */
export type WorkflowStepState =
  | "waiting"
  | "running"
  | "done"
  | "taken"
  | "failed"
  | "skipped"
  | "cut-off"
  | "not-begun";

export interface WorkflowStepView {
  readonly index: number;
  readonly label: string;
  readonly state: WorkflowStepState;
  /** Why it was not taken although an earlier run had it, or that it continues one that was cut off. */
  readonly why?: string;
  readonly error?: string;
  readonly agentId?: string;
  readonly model?: string;
  readonly startedAt?: number;
  /** Of one that has ended. */
  readonly durationMs?: number;
  readonly tokens: number;
  readonly calls: number;
  readonly costUsd?: number;
  /** The beginning of its prompt and of its result. */
  readonly prompt: string;
  readonly result?: string;
  /** The branch that it left its changes on. */
  readonly branch?: string;
}

const maxLogs = 200;
const maxText = 2000;

export function workflowSummary(run: FoundRun): WorkflowSummary {
  const { runId, name, status, startedAt, agents: steps, done } = run;
  return { runId, name, status, startedAt, steps, done };
}

/** Pure. A file that another program wrote may miss anything. */
export function workflowView(run: FoundRun): WorkflowView {
  const { record, status, startedAt, costUsd, tokens, scriptPath } = run;
  const entries = recordsOf(record["workflowProgress"]);
  const steps = entries.filter(({ type }) => type === "workflow_agent");
  const { summary, error, errorLine, result, durationMs } = record;
  const lastSign = Math.max(startedAt, ...steps.map(({ lastProgressAt }) => numberOf(lastProgressAt) ?? 0));
  const endedAt = status === "interrupted" ? lastSign : startedAt + (numberOf(durationMs) ?? 0);
  return {
    ...workflowSummary(run),
    costUsd,
    tokens,
    scriptPath,
    description: textOf(summary) ?? "",
    ...(status === "running" ? {} : { endedAt }),
    phases: phasesOf(entries, recordsOf(record["phases"]), status === "running"),
    logs: (Array.isArray(record["logs"]) ? record["logs"] : []).slice(-maxLogs).map((line) => String(line)),
    ...own("error", textOf(error)),
    ...own("errorLine", numberOf(errorLine)),
    ...own("result", result === undefined ? undefined : shownResult(result)),
  };
}

function phasesOf(
  entries: readonly JsonRecord[],
  declared: readonly JsonRecord[],
  isRunning: boolean,
): readonly WorkflowPhaseView[] {
  const phases = new Map<string, { phase: Omit<WorkflowPhaseView, "steps">; steps: WorkflowStepView[] }>();
  const phaseOf = (title: string, isChild = false): { steps: WorkflowStepView[] } => {
    const known = phases.get(title);
    if (known !== undefined) return known;
    const detail = textOf(declared.find((one) => one["title"] === title)?.["detail"]);
    const made = {
      phase: { title, ...own("detail", detail), ...(isChild ? { isChild: true as const } : {}) },
      steps: [],
    };
    phases.set(title, made);
    return made;
  };
  for (const entry of entries) {
    if (entry["type"] === "workflow_phase") phaseOf(textOf(entry["title"]) ?? "", entry["kind"] === "child");
    if (entry["type"] === "workflow_agent")
      phaseOf(textOf(entry["phaseTitle"]) ?? "").steps.push(stepOf(entry, isRunning));
  }
  return [...phases.values()].map(({ phase, steps }) => ({ ...phase, steps }));
}

function stepOf(entry: JsonRecord, isRunning: boolean): WorkflowStepView {
  const { label, why, error, agentId, model, startedAt, durationMs, costUsd, branch } = entry;
  const state = stateOf(entry, isRunning);
  const hasEnded = state === "done" || state === "failed" || state === "cut-off";
  return {
    index: numberOf(entry["index"]) ?? 0,
    label: textOf(label) ?? "",
    state,
    tokens: numberOf(entry["tokens"]) ?? 0,
    calls: numberOf(entry["toolCalls"]) ?? 0,
    prompt: textOf(entry["promptPreview"]) ?? "",
    ...own("why", textOf(why)),
    ...own("error", textOf(error)),
    ...own("agentId", textOf(agentId)),
    ...own("model", textOf(model)),
    ...own("startedAt", numberOf(startedAt)),
    ...(hasEnded ? own("durationMs", numberOf(durationMs)) : {}),
    ...own("costUsd", numberOf(costUsd)),
    ...own("result", textOf(entry["resultPreview"])),
    ...own("branch", textOf(branch)),
  };
}

function stateOf({ state, cached, skipped, startedAt }: JsonRecord, isRunning: boolean): WorkflowStepState {
  if (cached === true) return "taken";
  if (skipped === true) return "skipped";
  if (state === "done") return "done";
  if (state === "error") return "failed";
  const hasStarted = numberOf(startedAt) !== undefined;
  if (isRunning) return hasStarted ? "running" : "waiting";
  return hasStarted ? "cut-off" : "not-begun";
}

function shownResult(value: unknown): string {
  return bounded(typeof value === "string" ? value : JSON.stringify(value, undefined, 2), maxText);
}

function recordsOf(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? bounded(value, maxText) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function own<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { readonly [K in Name]?: Value } {
  // An object with that one name, or without it.
  return (value === undefined ? {} : { [name]: value }) as { readonly [K in Name]?: Value };
}

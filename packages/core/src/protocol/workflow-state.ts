import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";

/** One step of a workflow run: a call of `agent()`. Times are milliseconds since 1970. */
export interface WorkflowStep {
  /** Counts the calls of the run from 1. */
  readonly index: number;
  readonly label: string;
  /** The phase it belongs to. */
  readonly phase?: string;
  /** Its prompt in short. */
  readonly prompt: string;
  /** What decides its outcome, hashed; absent until that is known. */
  readonly key?: string;
  readonly state: "waiting" | "running" | "done" | "failed" | "skipped";
  /** Its result came from the journal. */
  readonly taken?: boolean;
  /** In a run that was resumed: why no result was taken, or that it continues a step that was cut off. */
  readonly why?: string;
  readonly agentId?: string;
  readonly agentType?: string;
  readonly model?: string;
  readonly queuedAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly lastSignAt: number;
  readonly tokens: number;
  readonly outputTokens: number;
  readonly toolUses: number;
  readonly costUsd?: number;
  /** The result in short. */
  readonly result?: string;
  /** The agent ended with an empty text. */
  readonly isEmpty?: boolean;
  readonly error?: string;
  /** The branch of its working tree, where it left one. */
  readonly branch?: string;
}

export interface StartedWith {
  readonly model: string;
  readonly effort?: string;
  readonly permissionMode: string;
}

export interface WorkflowPhaseState {
  /** Counts from 1. */
  readonly index: number;
  readonly title: string;
  readonly detail?: string;
  /** How many steps there were before it. */
  readonly stepsBefore: number;
  /** Another workflow within this one. */
  readonly isChild?: true;
}

export type WorkflowStatus = "running" | "completed" | "failed" | "killed";

/** One run of a workflow, as all hosts see it: made from its changes and nothing else. */
export interface WorkflowRunState {
  readonly runId: string;
  /** The task in its session; each resuming is another task of the same run. */
  readonly taskId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly description: string;
  /** The text of the script; empty for a function of a program. */
  readonly script: string;
  readonly scriptPath?: string;
  readonly args?: unknown;
  /** The call that started it. */
  readonly callId?: string;
  /** The model of steps that name none. */
  readonly defaultModel: string;
  /** What of its session is part of what its steps are: with another one they would run again. */
  readonly startedWith?: StartedWith;
  readonly status: WorkflowStatus;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** What it was expected to take, where settings ask for quotes. */
  readonly quote?: BatchQuote["total"];
  readonly phases: readonly WorkflowPhaseState[];
  readonly steps: readonly WorkflowStep[];
  readonly logs: readonly string[];
  readonly failures: readonly string[];
  /** JSON; absent where nothing was returned. */
  readonly result?: string;
  readonly error?: string;
  /** The line of the script the error came from. */
  readonly errorLine?: number;
  /** Where its files are; absent where nothing is kept. */
  readonly directory?: string;
  /** The whole result, for people and models. */
  readonly outputFile?: string;
}

/** What happens in a run, one thing at a time. */
export type WorkflowChange =
  | { readonly type: "phase"; readonly phase: WorkflowPhaseState }
  /** A new step, or what is different about one. */
  | { readonly type: "step"; readonly step: Pick<WorkflowStep, "index"> & Partial<WorkflowStep> }
  | { readonly type: "log"; readonly text: string }
  | { readonly type: "failure"; readonly text: string }
  | {
      readonly type: "ended";
      readonly status: Exclude<WorkflowStatus, "running">;
      readonly at: number;
      readonly result?: string;
      readonly error?: string;
      readonly errorLine?: number;
    };

/** More lines are not kept. */
const maxLines = 10_000;

/** The state after a change. */
export function foldWorkflow(state: WorkflowRunState, change: WorkflowChange): WorkflowRunState {
  switch (change.type) {
    case "phase":
      return { ...state, phases: [...state.phases, change.phase] };
    case "step": {
      const steps = [...state.steps];
      const at = change.step.index - 1;
      steps[at] = { ...(steps[at] ?? newStep(change.step.index)), ...change.step };
      return { ...state, steps };
    }
    case "log":
      return { ...state, logs: addLine(state.logs, change.text) };
    case "failure":
      return {
        ...state,
        logs: addLine(state.logs, change.text),
        failures: addLine(state.failures, change.text),
      };
    case "ended": {
      const { type: _type, at, ...rest } = change;
      return { ...state, ...rest, endedAt: at };
    }
  }
}

function newStep(index: number): WorkflowStep {
  return {
    index,
    label: "",
    prompt: "",
    state: "waiting",
    queuedAt: 0,
    lastSignAt: 0,
    tokens: 0,
    outputTokens: 0,
    toolUses: 0,
  };
}

function addLine(lines: readonly string[], text: string): readonly string[] {
  return lines.length >= maxLines ? lines : [...lines, text];
}

/** The sums of a run. */
export function workflowTotals({ steps }: Pick<WorkflowRunState, "steps">) {
  const count = (test: (step: WorkflowStep) => boolean): number => steps.filter(test).length;
  const done = count(({ state }) => state === "done");
  const skipped = count(({ state }) => state === "skipped");
  const own = steps.filter(({ taken }) => taken !== true);
  const sum = (of: (step: WorkflowStep) => number): number => own.reduce((all, step) => all + of(step), 0);
  return {
    agents: steps.length,
    done,
    skipped,
    taken: count(({ taken }) => taken === true),
    failed: steps.length - done - skipped,
    empty: count(({ isEmpty }) => isEmpty === true),
    tokens: sum(({ tokens }) => tokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    toolUses: sum(({ toolUses }) => toolUses),
    costUsd: sum(({ costUsd = 0 }) => costUsd),
  };
}

/** Phases and steps in the order in which they came, as hosts of the Agent SDK and the run file have them. */
export function progressList({ phases, steps }: Pick<WorkflowRunState, "phases" | "steps">) {
  const waiting = [...phases];
  const list: JsonRecord[] = [];
  const phasesUntil = (count: number): void => {
    while (waiting[0] !== undefined && waiting[0].stepsBefore <= count) {
      const { index, title, isChild } = waiting.shift() ?? waiting[0];
      list.push({ type: "workflow_phase", index, title, ...(isChild === true ? { kind: "child" } : {}) });
    }
  };
  for (const step of steps) {
    phasesUntil(step.index - 1);
    const phase = phases.find(({ title }) => title === step.phase);
    const { startedAt, endedAt, agentId, model, error, result } = step;
    list.push({
      type: "workflow_agent",
      index: step.index,
      label: step.label,
      phaseIndex: phase?.index,
      phaseTitle: phase?.title,
      agentId,
      model,
      state: shownStates[step.state],
      queuedAt: step.queuedAt,
      startedAt,
      attempt: 1,
      promptPreview: preview(step.prompt),
      ...(result === undefined ? {} : { resultPreview: preview(result) }),
      error,
      ...(step.taken === true ? { cached: true } : {}),
      ...(step.state === "skipped" ? { skipped: true } : {}),
      tokens: step.tokens,
      toolCalls: step.toolUses,
      durationMs: startedAt === undefined ? 0 : (endedAt ?? step.lastSignAt) - startedAt,
      lastProgressAt: step.lastSignAt,
      branch: step.branch,
      why: step.why,
      key: step.key,
      costUsd: step.costUsd,
    });
  }
  phasesUntil(Number.POSITIVE_INFINITY);
  return list;
}

const shownStates = {
  waiting: "start",
  running: "start",
  done: "done",
  failed: "error",
  skipped: "done",
} as const;

function preview(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}

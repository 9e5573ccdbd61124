import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import type { EventSource } from "../conversation/agent-event.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { AgentState } from "./agent-state.ts";
import type { MergeQueue, MergeStep } from "./merge-step.ts";
import type { Content, Effort, QueuedPrompt } from "./op.ts";
import type { Question, QuestionId } from "./question.ts";
import type { WorkflowChange, WorkflowRunState } from "./workflow-state.ts";

/** Everything that happens in a tree of agents, in one order. */
export type AgentEvent = EventSource & {
  /** Counts the events of the tree from 1. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
} & WireEvent;

export type WireEvent = RunEvent | QuestionEvent | StatusEvent;

/** Whether it is a step of an agent's run, and not a question or a change of status around it. */
export function isRunEvent<Event extends WireEvent>(event: Event): event is Event & RunEvent {
  return !Object.hasOwn(besideRuns, event.type);
}

const besideRuns: Readonly<Record<(QuestionEvent | StatusEvent)["type"], true>> = {
  "question-asked": true,
  "question-closed": true,
  "prompts-changed": true,
  "prompt-started": true,
  "prompt-read": true,
  "prompt-ended": true,
  "status-changed": true,
  "agent-changed": true,
  "agent-released": true,
  "command-changed": true,
  "workflow-changed": true,
  "shell-started": true,
  "shell-progressed": true,
  "shell-finished": true,
  "todos-changed": true,
  "merge-stepped": true,
  notice: true,
  closed: true,
};

export type QuestionEvent =
  | { readonly type: "question-asked"; readonly question: Question }
  /** It was answered, or needs no answer any more. */
  | { readonly type: "question-closed"; readonly question: QuestionId };

export type StatusEvent =
  | { readonly type: "prompts-changed"; readonly prompts: readonly QueuedPrompt[] }
  /** A turn begins: with a prompt, or with what children and commands in the background report. */
  | {
      readonly type: "prompt-started";
      readonly id: string;
      readonly content: Content;
      readonly origin: "prompt" | "report";
      readonly note?: unknown;
    }
  /** The agent reads a prompt in the middle of a turn, whose end is its end too. */
  | { readonly type: "prompt-read"; readonly prompt: QueuedPrompt }
  | ({ readonly type: "prompt-ended"; readonly id: string } & PromptOutcome)
  | { readonly type: "status-changed"; readonly status: Partial<LiveStatus> }
  /** A child was started or resumed, was moved to the background, or has ended. */
  | { readonly type: "agent-changed"; readonly state: AgentState }
  /** A child in the background has ended, and what it reports has been handed over. */
  | { readonly type: "agent-released" }
  /** A shell command that runs in the background has started or ended. */
  | { readonly type: "command-changed"; readonly command: BackgroundCommand }
  /** A workflow has started, or something has happened in its run; folding the changes gives its state. */
  | {
      readonly type: "workflow-changed";
      readonly runId: string;
      readonly taskId: string;
      readonly change: WorkflowChange | { readonly type: "started"; readonly state: WorkflowRunState };
    }
  | { readonly type: "shell-started"; readonly id: string; readonly command: string }
  | { readonly type: "shell-progressed"; readonly id: string; readonly text: string }
  | {
      readonly type: "shell-finished";
      readonly id: string;
      readonly command: string;
      readonly text: string;
      readonly isError: boolean;
      readonly durationMs: number;
      /** It continues in the background under this id. */
      readonly taskId?: string | undefined;
    }
  | { readonly type: "todos-changed"; readonly todos: readonly Todo[] }
  /** A step of a merge, and the queue after it; a dry run has the queue alone. */
  | { readonly type: "merge-stepped"; readonly step?: MergeStep | undefined; readonly queue: MergeQueue }
  | { readonly type: "notice"; readonly level: "info" | "warning" | "error"; readonly text: string }
  | { readonly type: "closed" };

/** How a prompt ended: with the run it began, by an error before or in it, or before it began. */
export type PromptOutcome =
  | { readonly outcome: "ended"; readonly ending: RunEnding; readonly isInterrupted: boolean }
  | { readonly outcome: "failed"; readonly error: WireError; readonly isInterrupted: boolean }
  | { readonly outcome: "withdrawn" };

export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly advice?: string | undefined;
  /** What was thrown; only within the process. */
  readonly cause?: unknown;
}

/** What of a session changes while it is open. */
export interface LiveStatus {
  readonly isBusy: boolean;
  readonly mode: PermissionMode;
  /** Undefined: as planned. */
  readonly model: string | undefined;
  readonly effort: Effort | undefined;
  readonly title: string | undefined;
}

export interface Todo {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly activeForm: string;
}

/** A shell command in the background. Times are on the clock of the session. */
export interface BackgroundCommand {
  readonly id: string;
  readonly state: "running" | "completed" | "failed" | "stopped" | "timed-out";
  readonly description: string;
  /** The agent that started it. */
  readonly owner: string;
  readonly command?: string | undefined;
  readonly callId?: string | undefined;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  readonly lastSignAt: number;
  readonly exitCode?: number | undefined;
  readonly outputFile?: string | undefined;
}

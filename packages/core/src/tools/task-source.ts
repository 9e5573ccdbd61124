import type { TextPage } from "./text-page.ts";

export type TaskRunState = "running" | "completed" | "failed" | "stopped" | "timed-out";

/** One thing that continues in the background, as tools and programs see it. Times come from the session's clock. */
export interface TaskView {
  readonly id: string;
  readonly kind: string;
  readonly state: TaskRunState;
  readonly description: string;
  /** The agent that started it. */
  readonly owner: string;
  readonly command?: string;
  /** The call that started it. */
  readonly callId?: string;
  readonly agentId?: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly lastSignAt: number;
  readonly exitCode?: number;
  /** Why it failed, or what else its ending needs to be understood. */
  readonly note?: string;
  readonly outputFile?: string;
  /** Such as tokens, tool uses, cost. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Where TaskOutput and TaskStop find tasks: shells, agents, whatever runs in the background. */
export interface TaskSource {
  readonly kind: string;
  find(id: string): TaskView | undefined;
  /** One that has ended so long ago that `find` no longer has it, with all that it has written. */
  recall?(id: string): Promise<{ readonly task: TaskView; readonly text: string } | undefined>;
  /** Running and ended ones, oldest first. */
  list(): readonly TaskView[];
  /** What it has written so far, bounded for a model. */
  output(id: string): Promise<string>;
  /** A part of all that it has written so far; offsets count characters. */
  page(id: string, offset: number): Promise<TextPage>;
  /** Resolves when the task has ended; immediately for one that has, or that is not known. */
  ended(id: string): Promise<void>;
  /** Ends it with all its processes and resolves when it has ended; one that has ended stays as it is. */
  stop(id: string): Promise<void>;
}

import type { Message } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { TaskControl } from "./task-manager.ts";

/** A child that is decided: its plan and the conversation it continues. Plain data. */
export interface Execution {
  readonly plan: ChildPlan;
  readonly history: readonly Message[];
}

/**
 * Carries out plans somewhere. The events end with exactly one `run-ended`; a stop through the signal is such an ending
 * too. A reader that leaves early has everything released.
 */
export interface Executor {
  execute(execution: Execution, control: TaskControl, signal: AbortSignal): AsyncIterable<RunEvent>;
}

import type { Message } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { ChildServers } from "./child-host.ts";
import type { TaskControl } from "./task-manager.ts";

/** A child that is decided: its plan, the conversation it goes on with, and the definition for what is code in it. */
export interface Execution {
  readonly plan: ChildPlan;
  readonly history: readonly Message[];
  readonly definition: AgentDefinition;
  /** Connected for this run alone; whoever started it releases them. */
  readonly servers?: ChildServers | undefined;
}

/**
 * Carries out plans somewhere. The events end with exactly one `run-ended`; a stop through the signal is such an ending
 * too. Whoever stops reading early has everything released.
 */
export interface Executor {
  execute(execution: Execution, line: TaskControl, signal: AbortSignal): AsyncIterable<RunEvent>;
}

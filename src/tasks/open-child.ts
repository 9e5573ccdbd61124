import type { UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { ChildPlan, ChildPlanned } from "../planning/plan-run.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { TaskControl } from "./task-manager.ts";
import type { TaskState } from "./task-state.ts";

/** All that starting children needs from the session: what a child would be, and a child that is ready to run. */
export interface ChildSource {
  /** Facts and plan; starts nothing and writes nothing. */
  plan(request: SpawnRequest): Promise<ChildPlanned>;
  open(request: SpawnRequest, options: OpenChildOptions): Promise<OpenedChild | RefusedChild>;
  /** The same for a plan that was decided before, perhaps by another process. */
  openPlan(plan: ChildPlan, options: OpenChildOptions): Promise<OpenedChild | RefusedChild>;
}

export interface OpenChildOptions {
  readonly signal: AbortSignal;
  /** Why there is no room for it, asked once it is known whether it runs in the background. */
  readonly refusal: (background: boolean) => string | undefined;
}

export interface RefusedChild {
  readonly type: "refused";
  readonly reason: string;
}

/** A child whose plan is decided and on disk, and which holds everything it needs. */
export interface OpenedChild {
  readonly type: "opened";
  readonly plan: ChildPlan;
  readonly outputFile: string;
  readonly record: (event: RunEvent) => void;
  readonly run: (control: TaskControl, signal: AbortSignal) => AsyncIterable<RunEvent>;
  /** Marks it for other processes as waiting for a place, until it runs. */
  readonly enterQueue?: () => void;
  /** What it reads before its first turn. */
  readonly news: readonly UserMessage[];
  /** Called once, however it ended: gives everything back. Never rejects. */
  readonly close: (state?: TaskState) => Promise<KeptWorktree | undefined>;
}

/** The working tree that an isolated child has left behind. */
export interface KeptWorktree {
  readonly path: string;
  readonly branch: string;
}

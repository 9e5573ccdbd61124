import type { MemoryPlace } from "../context/memory-place.ts";
import type { PermissionPolicy } from "../permissions/decide.ts";
import type { GrantedTool, SpawnRule } from "../tools/grants/tool-grants.ts";
import type { RunLimits } from "./run-limits.ts";

/** A decided value and where it came from, so that it can be shown to a person. */
export interface Decided<T> {
  readonly value: T;
  readonly from: string;
}

/** One run, decided completely before it starts. Plain data: it survives JSON. */
export interface RunPlan {
  readonly sessionId: string;
  readonly agent: { readonly id: string; readonly name: string };
  readonly model: Decided<string>;
  readonly effort?: Decided<string | number>;
  readonly tools: readonly GrantedTool[];
  readonly spawn: SpawnRule;
  /** The built-in tools that `--tools` leaves to the session, to the agents below as well; absent means all. */
  readonly sessionTools?: readonly string[];
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
  readonly system: readonly string[];
  readonly reminder?: string;
  /** Put before the person's own first prompt. */
  readonly initialPrompt?: string;
  /** Absent: no limit. */
  readonly maxTurns?: Decided<number>;
  /** What the run may take in all; absent fields limit nothing. */
  readonly limits?: RunLimits;
  /** What the main agent and all its children may take together. */
  readonly treeLimits?: RunLimits;
  /** The names of the skills whose text is in `system`. */
  readonly skills?: readonly string[];
  /** Where the agent keeps what it learns. */
  readonly memory?: MemoryPlace;
  /** The MCP servers whose tools it may have; `own` ones are started for this run and end with it. */
  readonly mcpServers?: readonly {
    readonly name: string;
    readonly own: boolean;
    /** Only these of its tools; absent means all. */
    readonly tools?: readonly string[];
  }[];
  readonly directory: string;
  /** What was asked for and did not count, each as one sentence. */
  readonly notes: readonly string[];
}

export type Planned =
  | { readonly type: "planned"; readonly plan: RunPlan }
  | {
      readonly type: "refused";
      readonly reason: string;
      readonly advice?: string;
      /** Set where a value of the call is to blame. */
      readonly code?: "unusable-tools" | "unusable-limit";
    };

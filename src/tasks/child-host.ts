import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AgentRegistry } from "../definitions/registry.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import type { Model } from "../model/model.ts";
import type { ChosenModel } from "../model/select-model.ts";
import type { ChildPlan, SpawnFacts } from "../planning/plan-run.ts";
import type { RunLine } from "./task-manager.ts";

/** A child's own record: its conversation so far, and the pen that goes on with it. */
export interface ChildRecord {
  readonly history: readonly Message[];
  readonly record: (event: RunEvent) => void;
  readonly close: () => void;
  readonly outputFile: string;
}

/** What starting children needs of the session around them. */
export interface ChildHost {
  readonly registry: () => Promise<AgentRegistry>;
  readonly model: (chosen: ChosenModel) => Promise<Model>;
  /** Everything planning asks for besides the definition, the parent and the prompt. */
  readonly facts: Pick<
    SpawnFacts,
    | "aliases"
    | "modelLimits"
    | "subagentModel"
    | "subagentModelForced"
    | "available"
    | "trusted"
    | "backgroundAllowed"
    | "parentModel"
  >;
  readonly systemPrompt: (definition: AgentDefinition, task: string) => Promise<readonly string[]>;
  readonly open: (plan: ChildPlan) => Promise<ChildRecord>;
  /** What an earlier child was, by its id. */
  readonly recall: (
    agentId: string,
  ) => Promise<{ readonly agentType: string; readonly model?: ChosenModel } | undefined>;
  /** What the child's loop needs, and what goes around it. */
  readonly prepare: (
    plan: ChildPlan,
    context: { readonly definition: AgentDefinition; readonly model: Model; readonly line: RunLine },
  ) => Promise<PreparedChild>;
  /** Asks an attended caller once for what a child in the background will need; what is granted is what it has. */
  readonly preapprove?: (plan: ChildPlan) => Promise<ChildPlan>;
  /** Gives a child that asks for it a working tree of its own; never falls back to the shared one. */
  readonly isolate: (plan: ChildPlan, definition: AgentDefinition) => Promise<Isolated>;
  readonly newAgentId: () => string;
  /** Called once when a child has ended: lets go of what it held. */
  readonly release: (agentId: string) => Promise<void>;
  /** Tells the person what went wrong beside the work. */
  readonly report?: (message: string) => void;
  /** Tells the parent something between its turns. */
  readonly notify: (message: UserMessage) => void;
}

/** A child moved into a place of its own. */
export type Isolated =
  | { readonly type: "refused"; readonly because: string }
  | {
      readonly type: "isolated";
      readonly plan: ChildPlan;
      readonly finish: () => Promise<KeptWorktree | undefined>;
    };

/** What an isolated child left behind. */
export interface KeptWorktree {
  readonly path: string;
  readonly branch: string;
}

export interface PreparedChild {
  readonly ports: LoopPorts;
  /** The first message, after hooks have heard of it. */
  readonly prompt: (text: string, signal: AbortSignal) => Promise<UserMessage>;
  /** Runs once, whatever the end; when the child was stopped, it must not take long. */
  readonly end: (stopped: AbortSignal) => Promise<void>;
}

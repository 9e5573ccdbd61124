import type { MemoryPlace } from "../context/memory-place.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AgentRegistry } from "../definitions/registry.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { Stopwatch } from "../foundation/stopwatch.ts";
import type { WaitClock } from "../foundation/wait-clock.ts";
import type { ReportedEvent } from "../journal/recovery-lines.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import type { Model } from "../model/model.ts";
import type { ChosenModel } from "../model/select-model.ts";
import type { EarlierRun } from "../planning/earlier-run.ts";
import type { OwnServers } from "../planning/own-servers.ts";
import type { ChildPlan, SpawnFacts } from "../planning/plan-run.ts";
import type { ServerInstructions } from "../planning/server-instructions.ts";
import type { Tool } from "../tools/tool.ts";
import type { TreeBudget } from "./budget.ts";
import type { TaskControl } from "./task-manager.ts";

/** A child's own record: its conversation so far, and the pen that goes on with it. */
export interface ChildRecord {
  readonly history: readonly Message[];
  readonly record: (event: RunEvent) => void;
  readonly close: () => void;
  /** Writes down that hooks are about to hear of it. */
  readonly reported?: (event: ReportedEvent) => void;
  readonly outputFile: string;
  /** Marks it for other processes as one that waits for a place, until it leaves the queue. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
}

/** The MCP servers that stand in a child's definition, for one run of it. */
export interface ChildServers {
  readonly own: OwnServers;
  readonly tools: readonly Tool[];
  readonly resourceTools: (servers: ReadonlySet<string>) => readonly Tool[];
  /** What the definition names and does not get, each as one sentence. */
  readonly notes: readonly string[];
  /** What the servers that it could have say of themselves, the session's among them. */
  readonly instructions?: readonly ServerInstructions[];
  /** Calls a tool by the pair, for hooks. */
  readonly call?: CallServer;
  /** Ends them; harmless when they have ended. */
  readonly release: () => Promise<void>;
}

export interface ConnectChildOptions {
  readonly background: boolean;
  readonly starts: boolean;
  readonly signal: AbortSignal;
  /** Where they start; absent means where the session works. */
  readonly directory?: string;
}

export type CallServer = (
  server: string,
  tool: string,
  input: Readonly<Record<string, unknown>>,
  options: { readonly signal: AbortSignal },
) => Promise<{ readonly text: string; readonly isError: boolean }>;

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
    | "servers"
    | "trusted"
    | "backgroundAllowed"
    | "parentModel"
    | "limits"
    | "isPriced"
    | "canSearch"
    | "isServed"
  >;
  readonly systemPrompt: (definition: AgentDefinition, task: string) => Promise<readonly string[]>;
  /** Where the agent's memory is, and what is wrong with it; absent where no agent has any. */
  readonly memory?: (
    definition: AgentDefinition,
  ) => Promise<{ readonly place?: MemoryPlace; readonly diagnostics: readonly Diagnostic[] }>;
  /** Which skills stand in the agent's prompt, and what was named in vain. */
  readonly skills?: (definition: AgentDefinition) => {
    readonly names: readonly string[];
    readonly notes: readonly string[];
  };
  /** Connects the servers of a definition; without `starts` it only tells which there would be. */
  readonly servers?: (definition: AgentDefinition, options: ConnectChildOptions) => Promise<ChildServers>;
  readonly open: (plan: ChildPlan) => Promise<ChildRecord>;
  /** What an earlier child was, by its id. */
  readonly recall: (
    agentId: string,
  ) => Promise<
    { readonly agentType: string; readonly model?: ChosenModel; readonly earlier?: EarlierRun } | undefined
  >;
  /** Before a child is resumed: settles how its last run ended, where its process died. */
  readonly recover?: (agentId: string) => Promise<void>;
  /** What a child that goes on should know of what it had left running; `wasTold` by the ids of tasks. */
  readonly news?: (agentId: string, wasReported: (taskId: string) => boolean) => readonly UserMessage[];
  /** What the child's loop needs, and what goes around it. */
  readonly prepare: (
    plan: ChildPlan,
    context: {
      readonly definition: AgentDefinition;
      readonly model: Model;
      readonly line: TaskControl;
      readonly servers?: ChildServers | undefined;
    },
  ) => Promise<PreparedChild>;
  /** Asks an attended caller once for what a child in the background will need; what is granted is what it has. */
  readonly preapprove?: (plan: ChildPlan) => Promise<ChildPlan>;
  /** Gives a child that asks for it a working tree of its own; never falls back to the shared one. */
  readonly isolate: (
    plan: ChildPlan,
    definition: AgentDefinition,
    options: { readonly signal: AbortSignal },
  ) => Promise<Isolated>;
  readonly newAgentId: () => string;
  /** What all agents of the session may take together; absent limits nothing. */
  readonly budget?: TreeBudget;
  /** Absent: no clock ends a child. */
  readonly clocks?: ChildClocks;
  /** Called once when a child has ended: lets go of what it held. */
  readonly release: (agentId: string) => Promise<void>;
  /** Tells the person what went wrong beside the work. */
  readonly report?: (message: string) => void;
  /** Tells the parent something between its turns. */
  readonly notify: (message: UserMessage) => void;
}

/** The time by which children are limited. */
export interface ChildClocks {
  readonly clock: WaitClock;
  /** Runs while any agent of the session works. */
  readonly tree: Stopwatch;
  readonly treeTimeMs?: number;
  /** When a silent child that was moved to the background is stopped; 0 never. */
  readonly backgroundStopMs?: number;
}

/** A child moved into a place of its own. */
export type Isolated =
  | { readonly type: "refused"; readonly reason: string }
  | {
      readonly type: "isolated";
      readonly plan: ChildPlan;
      /** Moves another plan of the same child there. */
      readonly move: (plan: ChildPlan) => ChildPlan;
      /** The child is written down now, so that whoever finds this process dead knows whose place it is. */
      readonly begun?: () => void;
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

import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { HookRule } from "@retinue/config/hooks/read-hooks.ts";
import type { MemoryPlace } from "@retinue/config/instructions/memory-place.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { GrantedTool, SpawnRule } from "@retinue/config/tools/tool-grants.ts";
import type { AskingAgent } from "@retinue/gate/approver.ts";
import type { QuotedBands } from "@retinue/gate/batch-quote.ts";
import type { PermissionMode, PermissionPolicy, PolicyRule } from "@retinue/gate/permission-policy.ts";

/** A decided value and where it came from, so that it can be shown to a person. */
export interface Decided<T> {
  readonly value: T;
  readonly from: string;
}

/** One agent, decided completely before it starts: main agent, child, teammate or forked skill. Plain data: it survives JSON. */
export interface AgentPlan {
  readonly sessionId: string;
  readonly agent: { readonly id: string; readonly name: string };
  readonly model: Decided<string>;
  /** The same model as it is referred to, with its provider. */
  readonly chosenModel: ChosenModel;
  readonly effort?: Decided<string | number>;
  readonly tools: readonly GrantedTool[];
  /** Tools that its parent had found by a search, and that it therefore has from the start. */
  readonly loadedTools?: readonly string[];
  readonly spawn: SpawnRule;
  /** Which agents the program may start, where that differs: its list of tools for the agent says nothing about itself. */
  readonly programSpawn?: SpawnRule;
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
  /** Set where agents that this one starts may start agents of their own, or it is such a one. */
  readonly nesting?: Nesting;
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
  /** Where its session works; another folder than `directory` for a child in a working tree of its own. */
  readonly sessionDirectory: string;
  /** The folder in it that the agent starts in; absent: `directory`. */
  readonly cwd?: Decided<string>;
  /** Variables for its commands. */
  readonly env?: Readonly<Record<string, Decided<string>>>;
  /** What was requested and did not count, each as one sentence. */
  readonly notes: readonly string[];
  /** What was specified too and did not count, because something stronger was specified. */
  readonly overrode: readonly Overridden[];
  /** What the runtime runs after its last turn; absent where nothing is named. */
  readonly verify?: PlannedChecks;
  /** The program of another vendor that does its work; absent: our own loop with a model. */
  readonly runner?: PlannedRunner;
  /** What it was expected to take before it started, where settings want that to be kept. */
  readonly quote?: QuotedBands;
  /** Of a child: the definition it was decided from. */
  readonly definition?: PlannedDefinition;
  /** Of a child. Absent: it needs nothing but its plan, the journal and the disk. */
  readonly functions?: readonly ProgramFunction[];
  /** The transcript whose conversation it continues, and how many messages of it; absent: all, or nothing to continue. */
  readonly history?: { readonly transcript: string; readonly messages?: number };
  /** What another agent or the program gave it to do; absent for a main agent, which gets prompts. */
  readonly task?: AgentTask;
}

/** The plan of an agent that was started by another. */
export type ChildPlan = AgentPlan & {
  readonly definition: PlannedDefinition;
  readonly task: AgentTask;
};

export interface AgentTask {
  readonly agentType: string;
  readonly description: string;
  readonly prompt: string;
  readonly background: boolean;
  readonly parentId: string;
  /** The agents between the main agent and this one, the outermost first; absent for a child of the main agent. */
  readonly ancestors?: readonly AskingAgent[];
  readonly callId?: string;
  readonly name?: string;
  /** It continues an earlier conversation of its own. */
  readonly resumed: boolean;
  /** It works in a working tree of its own. */
  readonly isolation?: "worktree";
  /** It starts with its parent's conversation. */
  readonly forksContext: boolean;
  /** The skill whose text is its task. */
  readonly skill?: SkillOfSpawn;
  /** It is a teammate: idle after its work, until mail wakes it. */
  readonly team?: TeamMembership;
  /** It is a step of a workflow, whose script waits for it. */
  readonly workflow?: StepOfWorkflow;
}

/** The place of a child in the run of a workflow. */
export interface StepOfWorkflow {
  readonly runId: string;
  readonly phase?: string;
}

/** How far agents may start agents of their own. */
export interface Nesting {
  /** How many levels there are below the main agent; its children are the first. */
  readonly depth: Decided<number>;
  /** How many agents the agents below the main one may start in a session, all together. */
  readonly agents: Decided<number>;
}

/** The folder in which an agent's calls start. */
export function startOf({ cwd, directory }: Pick<AgentPlan, "cwd" | "directory">): string {
  return cwd?.value ?? directory;
}

/** 0 for a main agent, 1 for its children. */
export function levelOf({ task }: Pick<AgentPlan, "task">): number {
  return task === undefined ? 0 : (task.ancestors ?? []).length + 1;
}

/** A program of another vendor, as it is started and driven over the Agent Client Protocol. */
export interface PlannedRunner {
  readonly name: string;
  readonly command: readonly string[];
  /** Names of variables that it gets of the environment, besides those that every program needs. */
  readonly env: readonly string[];
  /** The mode of it in which it asks for most, where it has that. */
  readonly mode?: string;
  /** Folders below the home in which it keeps its state. */
  readonly state?: readonly string[];
  /** The model of its own that the definition names. */
  readonly model?: string;
  /** Its own session, which is continued. */
  readonly session?: string;
  /** It starts although rules do not reach all it does. */
  readonly unguarded?: true;
  /** It starts in the sandbox of the settings, or not at all. */
  readonly sandboxed?: true;
}

export interface PlannedChecks {
  readonly checks: readonly PlannedCheck[];
  /** How often a failed one goes back to the agent; absent means twice. */
  readonly retries?: number;
}

export interface PlannedCheck {
  readonly run: string;
  readonly timeoutSeconds?: number;
  /** The call, the settings, or the definition. */
  readonly from: string;
  /** A model has named it: it runs only as a command of the agent that did, or of the one it is for. */
  readonly ofModel?: true;
  /** Why it does not run; the result then fails the check. */
  readonly refused?: string;
}

/** What one run may take, each with where the number came from. Turns have a field of their own in the plan. */
export interface RunLimits {
  /** From the start to the end, without the time a person is asked or a place is waited for. */
  readonly timeMs?: Decided<number>;
  /** Tokens read and written, all kinds together. */
  readonly tokens?: Decided<number>;
  /** US dollars. */
  readonly costUsd?: Decided<number>;
  readonly toolCalls?: Decided<number>;
  /** One tool call. */
  readonly toolTimeMs?: Decided<number>;
  /** Without any sign of life: reported at this time, stopped at twice of it. */
  readonly silenceMs?: Decided<number>;
  /** Equal rounds of calls that fail or bring nothing new. */
  readonly repeatedCalls?: Decided<number>;
}

export interface Overridden {
  readonly field: "model" | "maxTurns" | "effort" | "permissionMode";
  readonly value: string;
  readonly from: string;
}

/** The definition that a child was decided from, without its prompt, which is in `system`, and without its functions. */
export type PlannedDefinition = Omit<AgentDefinition, "prompt" | "behaviour" | "written">;

export function plannedDefinition({
  prompt: _prompt,
  behaviour: _behaviour,
  written: _written,
  ...definition
}: AgentDefinition): PlannedDefinition {
  return definition;
}

/** A function of the program that started a child, by name; only a process that has it can carry out the plan. */
export interface ProgramFunction {
  readonly kind: "tool" | "hook" | "server" | "model" | "approver" | "canUseTool" | "ask" | "onEnd";
  readonly name: string;
}

/** What a skill brings along that runs in an agent of its own. */
export interface SkillOfSpawn {
  readonly name: string;
  readonly allow: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  readonly hooks: readonly HookRule[];
  readonly plugin?: { readonly name: string; readonly root: string };
}

/** The place of a child in a team: it lasts beyond its first answer, and has the team's tools. */
export interface TeamMembership {
  readonly team: string;
  readonly member: string;
  /** The list of tasks it shares. */
  readonly taskList: string;
  /** In plan mode: the mode it gets once the lead has approved its plan. */
  readonly approvedMode?: PermissionMode;
  /** It runs in a process of its own. */
  readonly isProcess?: true;
}

/** From the main agent to the one of the plan; a teammate is known by its name in the team. */
export function agentPath({ agent, task }: AgentPlan, main: AskingAgent): readonly AskingAgent[] {
  if (agent.id === main.id) return [main];
  const own = task?.team === undefined ? agent : { ...agent, name: task.team.member };
  return [main, ...(task?.ancestors ?? []), own];
}

/** Whether a plan and the model that another one chose are the same. */
export function isSameModel(one: ChosenModel, other: ChosenModel): boolean {
  return one.id === other.id && one.provider === other.provider;
}

import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { MemoryPlace } from "@retinue/config/instructions/memory-place.ts";
import type { AliasTable, ChosenModel, ModelLimits } from "@retinue/config/models/select-subagent-model.ts";
import type { AgentLimits } from "@retinue/config/settings/agent-limits.ts";
import type { VerifyInput } from "@retinue/config/settings/verify-checks.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import type { GrantedTool } from "@retinue/config/tools/tool-grants.ts";
import type { QuotedBands } from "@retinue/gate/batch-quote.ts";
import type { PolicyFacts } from "@retinue/gate/build-policy.ts";
import type { BackgroundRight, PermissionMode, PolicyRule } from "@retinue/gate/permission-policy.ts";
import type {
  AgentPlan,
  ChildPlan,
  Decided,
  PlannedCheck,
  ProgramFunction,
  SkillOfSpawn,
  StepOfWorkflow,
  TeamMembership,
} from "./agent-plan.ts";
import type { WorktreePlace } from "./in-worktree.ts";
import type { LimitFacts } from "./plan-limits.ts";
import type { OwnServers, ServerInstructions } from "./servers-of-run.ts";

/** What a caller wants of an agent, before anything is decided. */
export interface AgentRequest {
  /** The agent type; absent means `general-purpose`. */
  readonly agentType?: string | undefined;
  /** A few words for people. */
  readonly description?: string | undefined;
  readonly prompt?: string | undefined;
  readonly model?: string | undefined;
  /** The id of an earlier child to resume. */
  readonly resume?: string | undefined;
  /** The id of a new child, where the program has chosen it. */
  readonly agentId?: string | undefined;
  /** False, from a program: the resumed child gets the tools of its definition as it is now, also new ones. */
  readonly keepTools?: boolean | undefined;
  readonly background?: boolean | undefined;
  readonly maxTurns?: number | undefined;
  /** Commands that the runtime runs after its last turn, beside those of settings and the definition. */
  readonly verify?: VerifyInput | undefined;
  /** Of a resumed child: the checks that an earlier call named. */
  readonly keptChecks?: readonly PlannedCheck[] | undefined;
  /** What it may take; only ever narrows what settings and the definition set. */
  readonly limits?: AgentLimits | undefined;
  readonly name?: string | undefined;
  readonly mode?: PermissionMode | undefined;
  readonly isolation?: string | undefined;
  /** The working tree that the runtime gives it, and the rules by which it may do something there without being asked. */
  readonly given?: GivenWorktree | undefined;
  /** The folder it starts in: relative to that of the agent that starts it, and inside its working directories. */
  readonly cwd?: string | undefined;
  /** Variables for its commands, beside those of its definition. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Of a resumed child: the variables that an earlier call named. */
  readonly keptEnv?: Readonly<Record<string, string>> | undefined;
  /** The most seconds it may take. */
  readonly timeout?: number | undefined;
  readonly effort?: string | number | undefined;
  /** From a program: takes the place of the definition's prompt. */
  readonly systemPrompt?: string | undefined;
  /** From a program: added to the definition's prompt. */
  readonly appendSystemPrompt?: string | undefined;
  /** What a program requests counts as it is; what a model requests only where it does not widen. */
  readonly origin: "model" | "program";
  /** The skill whose text is the prompt. */
  readonly skill?: SkillOfSpawn | undefined;
  /** The call that asked for it, when a model did. */
  readonly callId?: string | undefined;
  /** What was quoted for it. */
  readonly quote?: QuotedBands | undefined;
  /** The team that the call names. */
  readonly teamName?: string | undefined;
  /** It is a member of a team, as the session has decided. */
  readonly team?: TeamMembership | undefined;
  /** It is a step of a workflow. */
  readonly workflow?: StepOfWorkflow | undefined;
  /** Of a main agent: the person said that nothing needs permission. */
  readonly skipPermissions?: boolean | undefined;
  /** Of a main agent, `--tools`: which of the built-in tools exist; absent means all. */
  readonly tools?: readonly string[] | undefined;
  /** Of a main agent: what it and all its children may cost. */
  readonly maxBudgetUsd?: number | undefined;
}

/** A working tree that was made for another purpose than to isolate the agent. */
export interface GivenWorktree {
  readonly worktree: WorktreePlace;
  readonly rules: readonly string[];
}

/** A request for an agent that another one, or the program, gives a task. */
export type SpawnRequest = AgentRequest & { readonly description: string; readonly prompt: string };

/** What was decided for a child before, as far as continuing with it respects that. */
export interface EarlierRun {
  /** Of its first run: going on never adds to them. */
  readonly tools?: readonly GrantedTool[] | undefined;
  /** A mode of its own that it had; counts only where it is no wider than what it may have today. */
  readonly mode?: PermissionMode | undefined;
  readonly name?: string | undefined;
  /** The call of the main agent that first asked for it. */
  readonly callId?: string | undefined;
  readonly isolation?: "worktree" | undefined;
  readonly cwd?: string | undefined;
  readonly keptEnv?: Readonly<Record<string, string>> | undefined;
  readonly maxTurns?: number | undefined;
  readonly effort?: string | number | undefined;
  /** The checks that its call named. */
  readonly keptChecks?: readonly PlannedCheck[] | undefined;
  /** The conversation that another vendor's program keeps for it. */
  readonly runnerSession?: string | undefined;
  /** The task of one that never got to its first words. */
  readonly unstartedPrompt?: string | undefined;
}

/** What an interrupted child is shown unless it is given other words. */
export const continuePrompt =
  "You were interrupted: the process that ran you ended in the middle of your work. Continue where you stopped. Before you repeat something that changes anything, check whether it happened.";

/** What the call leaves open is as it was before; a task that was never started comes before new words. */
export function withEarlier(
  request: SpawnRequest,
  { earlier = {}, model }: { readonly earlier?: EarlierRun; readonly model?: ChosenModel },
): SpawnRequest {
  const { unstartedPrompt, tools: _tools, mode: _mode, runnerSession: _session, ...same } = earlier;
  // A field that is there and undefined leaves it open as well.
  const given = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
  const kept = {
    ...same,
    ...(model === undefined ? {} : { model: modelReference(model) }),
    ...request,
    ...given,
  };
  if (unstartedPrompt === undefined) return kept;
  // One that never began was not interrupted in anything, so the standard words mean nothing to it.
  return {
    ...kept,
    prompt: request.prompt === continuePrompt ? unstartedPrompt : `${unstartedPrompt}\n\n${request.prompt}`,
  };
}

function modelReference({ id, provider }: ChosenModel): string {
  return provider === undefined ? id : `${provider}/${id}`;
}

/** Whether a child is to run in the background, where that is allowed. */
export function requestsBackground(request: AgentRequest, definition: AgentDefinition): boolean {
  // A teammate is never waited for, and can ask all the same.
  if (request.team !== undefined) return false;
  // Its workflow waits for it, whatever its definition specifies.
  if (request.workflow !== undefined) return false;
  // Resuming in the foreground is how an agent that did not have a permission gets to ask for it.
  const isCalledBack = request.resume !== undefined && request.background === false;
  return !isCalledBack && (definition.background === true || request.background === true);
}

/** What was found out before planning; gathering it did the I/O. */
interface CommonFacts {
  readonly agentId: string;
  /** Every tool of the session; which of them a parent has is in its plan. */
  readonly available: readonly AvailableTool[];
  /** What comes from MCP servers of a child's definition; they take the place of the session's of the same name. */
  readonly own?: OwnServers;
  /** What the servers that it could have say about their tools. */
  readonly serverInstructions?: readonly ServerInstructions[];
  readonly system: readonly string[];
  /** Where the agent's memory is; without it, its `memory` adds nothing. */
  readonly memory?: MemoryPlace;
  /** The names of the skills whose text is in `system`. */
  readonly skills?: readonly string[];
  readonly trusted: boolean;
  readonly limits?: LimitFacts;
  /** The setting `verify`: checks by agent type. */
  readonly verify?: Readonly<Record<string, unknown>> | undefined;
  /** How hard models think where neither call nor definition specifies it. */
  readonly effort?: Decided<string | number>;
  /** The folder it starts in, where the call or its definition names one that is there. */
  readonly cwd?: Decided<string>;
  /** Settings want processes in a sandbox. */
  readonly sandboxed?: boolean;
  /** What was already found not to count. */
  readonly notes?: readonly string[];
  /** Whether a model's provider searches the web itself; absent means it does. */
  readonly canSearch?: (model: ChosenModel) => boolean;
}

/** What is known of a session that its main agent is planned for. */
export interface MainFacts extends CommonFacts, PolicyFacts {
  readonly parent?: undefined;
  readonly sessionId: string;
  /** The agent that runs as the main thread, if one was named. */
  readonly definition?: AgentDefinition;
  /** The model, which was chosen while looking for one that answers. */
  readonly model: Decided<string>;
  readonly chosenModel: ChosenModel;
  readonly settingsMode?: { readonly mode: PermissionMode; readonly from: string };
  readonly bypassForbidden?: boolean;
  /** The MCP servers there are; `own` ones are in the definition. */
  readonly servers?: readonly { readonly name: string; readonly own: boolean }[];
}

/** What is known of a child's definition and of the agent that starts it. */
export interface ChildFacts extends CommonFacts {
  readonly definition: AgentDefinition;
  readonly parent: AgentPlan;
  readonly aliases: AliasTable;
  /** The limits of settings on models; absent limits nothing. */
  readonly modelLimits?: ModelLimits;
  /** CLAUDE_CODE_SUBAGENT_MODEL and its FORCE. */
  readonly subagentModel?: string;
  readonly subagentModelForced?: boolean;
  /** The working tree that was made for it. */
  readonly worktree?: WorktreePlace;
  /** What people have allowed in this session so far, and what they have granted this child before it starts. */
  readonly approved?: readonly PolicyRule[];
  readonly preapproved?: readonly string[];
  /** Functions of the program that started the session; the plan names those that the child can reach. */
  readonly functions?: readonly ProgramFunction[];
  /** The transcripts it may continue, and how many messages its parent has; asked for only where it continues one. */
  readonly transcripts?: {
    readonly own: () => string;
    readonly parent: string;
    readonly messages: () => number;
  };
  /** What was decided for the child before, when it is resumed. */
  readonly earlier?: Pick<EarlierRun, "tools" | "mode" | "runnerSession">;
  readonly backgroundAllowed: boolean;
  /** What children have in the background all the same; absent: nothing. */
  readonly backgroundKeeps?: readonly BackgroundRight[];
  /** Whether what a model costs is known; absent means it is. */
  readonly isPriced?: (model: ChosenModel) => boolean;
  /** Whether a provider is configured for a model; absent means it is. */
  readonly isServed?: (model: ChosenModel) => boolean;
  /** The MCP servers of the session; absent means those that the parent has something of. */
  readonly servers?: readonly { readonly name: string }[];
  /** What its parent has found of the tools that are loaded on demand. */
  readonly loadedTools?: readonly string[];
}

export type AgentFacts = MainFacts | ChildFacts;

export interface Refusal {
  readonly type: "refused";
  readonly reason: string;
  readonly advice?: string;
  /** Set where a value of the call is to blame. */
  readonly code?: "unusable-tools" | "unusable-limit";
}

export type AgentPlanned<Plan = AgentPlan> = { readonly type: "planned"; readonly plan: Plan } | Refusal;
export type ChildPlanned = AgentPlanned<ChildPlan>;

import type { QuotedAgent } from "@retinue/gate/batch-quote.ts";
import type { SpentRecord } from "../../conversation/spent-record.ts";
import type { RecordRequest } from "../../journal/create-request-recorder.ts";
import type { SessionFiles } from "../../journal/session-files.ts";
import type { Model } from "../../models/model.ts";
import type { AgentPlan, PlannedDefinition } from "../../planning/agent-plan.ts";
import type { TaskState } from "../../protocol/agent-state.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import type { AgentBudget, TreeBudget } from "../../tasks/tree-budget.ts";
import type { Stopwatch } from "../../tasks/watch-run.ts";
import type { ToolSearch } from "../../tools/create-tool-search.ts";
import type { SessionInbox } from "../approvals/session-inbox.ts";
import type { RunningTask } from "../hooks/running-tasks.ts";
import type { SessionHooks } from "../hooks/session-hooks.ts";
import type { LiveText } from "../live/live-text.ts";
import type { TypedOutput } from "../options/typed-output.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { ChildServers, SessionServers } from "../servers/session-servers.ts";
import type { Verifier } from "../verify/create-verifier.ts";
import type { AgentSkills } from "./agent-skills.ts";
import type { openAsking } from "./approval-routing.ts";
import type { AssembledTools, createEnvironments, createToolContexts } from "./assemble-tools.ts";
import type { AcceptedFiles } from "./create-authorize.ts";
import type { ForkSkill } from "./fork-skill.ts";
import type { AgentParts, Capability } from "./open-agent.ts";
import type { SessionSkills } from "./session-skills.ts";
import type { UnattendedBudget } from "./wait-for-quota.ts";

/** What all agents of a session share. */
export interface AgentServices {
  readonly runtime: RuntimeContext;
  /** Where the files of the session are, or would be. */
  readonly files: SessionFiles;
  readonly tools: AssembledTools;
  readonly servers: SessionServers;
  readonly skills: SessionSkills;
  readonly findModel: (name: string) => Promise<Model>;
  /** Names of the models that answer where that of an agent cannot. */
  readonly fallbackModels: readonly string[];
  readonly toolContext: ReturnType<typeof createToolContexts>;
  /** The variables that commands of an agent are started with. */
  readonly environmentOf: ReturnType<typeof createEnvironments>;
  /** The main agent of the session. */
  readonly main: AgentPlan["agent"];
  readonly tree: TreeBudget;
  /** What may be taken after a wait for a quota, where one is waited for. */
  readonly unattended?: UnattendedBudget;
  /** Takes down what models are asked; absent where nothing is recorded. */
  readonly recordRequest?: RecordRequest;
  /** Puts calls of all agents to the same person, in one queue; absent where the session is unattended. */
  readonly asking?: ReturnType<typeof openAsking>;
  /** Keeps questions until they are answered; absent: where the session is unattended, calls are refused. */
  readonly inbox?: SessionInbox;
  /** What models of the session are writing now. */
  readonly liveText: LiveText;
  /** Files that steer programs, and whose change was allowed in this session. */
  readonly acceptedFiles: AcceptedFiles;
  /** What was quoted for agents of the whole tree without a question, since the last message of a person or program. */
  readonly unasked: QuotedAgent[];
  /** Agents of other vendors whose powers were shown in this session. */
  readonly shownRunners: Set<string>;
  /** What agents that may start others have found of the tools that are loaded on demand, by their ids. */
  readonly loadedTools: Map<string, ToolSearch["loaded"]>;
}

/** What one agent has of its own. */
export interface AgentOwn {
  readonly definition: PlannedDefinition | undefined;
  readonly model: Model;
  readonly stopwatch: Stopwatch;
  readonly commit?: (() => Promise<void>) | undefined;
  /** What it may take, where that was opened before; absent: as in its plan. */
  readonly budget?: AgentBudget | undefined;
  /** The result of a certain form that it was asked for. */
  readonly output?: TypedOutput | undefined;
  /** Before and behind what every agent has. */
  readonly first?: readonly Capability[];
  readonly last?: readonly Capability[];
  /** Set for a child: how it is controlled, its own servers and transcript, and the clock of the agent that waits for it. */
  readonly child?: {
    readonly control: TaskControl;
    /** What it has taken so far, for its hooks. */
    readonly spent?: () => SpentRecord | undefined;
    /** Whether tools of MCP servers are there for it now. */
    readonly hasServerTools: () => boolean;
    readonly servers: ChildServers | undefined;
    readonly transcript: string;
    readonly waiting: Stopwatch;
  };
  /** Set for the main agent. */
  readonly main?: {
    readonly source: "startup" | "resume" | "fork";
    /** Takes what hooks of the session's start set for later commands. */
    readonly environment: Map<string, string>;
    readonly fork: ForkSkill;
    readonly tasks: () => readonly TaskState[];
    readonly runningTasks: () => readonly RunningTask[];
  };
}

export interface EquippedAgent {
  readonly parts: AgentParts;
  readonly hooks: SessionHooks | undefined;
  readonly verifier: Verifier;
  /** Absent for a child that may load none. */
  readonly skills: AgentSkills | undefined;
}

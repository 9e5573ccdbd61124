import type { PermissionMode, PermissionPolicy } from "@retinue/gate/permission-policy.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { HookWatch } from "../hooks/hook-runner.ts";
import type { TranscriptObserver } from "../journal/transcript-writer.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import type { McpConnectionOptions, McpConnections } from "../mcp/mcp-connections.ts";
import type { Model } from "../models/model.ts";
import type { ChildObserver } from "../tasks/child-record.ts";
import type { TreeBudget } from "../tasks/tree-budget.ts";
import type { SeenFile } from "../tools/file-ledger.ts";
import type { TaskView } from "../tools/task-source.ts";
import type { Tool } from "../tools/tool.ts";

/** How the host of a session takes part in it while it runs; made by `openTree`. Each part is read again whenever it matters. */
export interface SessionPorts extends ModelPorts, TurnPorts, ChildPorts {
  /** The policy by which the next call of any agent of the session is decided. */
  readonly policy?: (planned: PermissionPolicy) => PermissionPolicy;
  /** Answers what MCP servers want to know of the person; absent means that there is no person to ask. */
  readonly elicit?: McpConnectionOptions["ask"];
  /** Called with the session's MCP servers when they are connected. */
  readonly serversConnected?: (connections: Pick<McpConnections, "request" | "prompts">) => void;
  /** Files that the main agent knows without having read them, by real path. */
  readonly seenFile?: (path: string) => SeenFile | undefined;
  /** The host shows by itself what waits until the folder is trusted, so no warning repeats it. */
  readonly showsTrust?: boolean;
  /** Follows hooks of settings, plugins and definitions. */
  readonly watchHook?: HookWatch | undefined;
  /** Called when a command in the background has started, and when it has ended. */
  readonly commandChanged?: (command: TaskView, stop: () => Promise<void>) => void;
  /** The list of tasks of a session that leads no team; a team has a board instead. */
  readonly taskList?: readonly Tool[];
  /** Gives ids to lines of the main transcript, and is notified of them. */
  readonly transcript?: TranscriptObserver;
  /** Called with every line that was written to the transcript of a child, and with what is beside it. */
  readonly childAppended?: ChildObserver | undefined;
}

/** Which model answers, and how. */
export interface ModelPorts {
  /** The model that answers the main agent from the next request on; undefined means the one of the plan. */
  readonly model?: () => string | undefined;
  /** The effort of the next request; undefined means that of the plan. */
  readonly effort?: () => string | number | undefined;
  /** Names under which the main agent's model may call tools, and what they mean. */
  readonly toolAliases?: ReadonlyMap<string, string> | undefined;
  /** Goes around the models of this process only, and changes nothing of what they say. */
  readonly gatherText?: (model: Model) => Model;
}

/** What the main agent reads, and when its runs end. */
interface TurnPorts {
  /** Present: the host hands messages to the agent while it works, and a run does not wait at its end for agents in the background. */
  readonly reading?: ReadingPorts | undefined;
  /** Whether the run of the main agent must end after this turn; forgotten once asked. */
  readonly takeStop?: () => boolean;
  /** Makes the main agent's model continue an answer that was cut, refused or empty. */
  readonly continueAnswer?: LoopPorts["continueAnswer"];
  /** A compaction that was asked for happens however short the conversation is. */
  readonly compactsShort?: boolean;
  /** A main agent that ends without the result it was asked for is reminded once; after that its text counts. */
  readonly remindsOnceOfOutput?: boolean;
}

export interface ReadingPorts {
  /** Messages written since the last call; the agent reads them between two model calls. */
  readonly takeMessages: () => readonly UserMessage[];
  /** Whether reports of children may be read now; absent: whenever there are some, also at the end of a run. */
  readonly takesReports?: (() => boolean) | undefined;
  /** The permission mode of the main agent from now on; agents it has started keep theirs. */
  readonly mode: () => PermissionMode | undefined;
}

/** How children are started and paid for. */
interface ChildPorts {
  /** The host answers for children in the background too, so they may ask and have the tools of its servers. */
  readonly attendsBackground?: boolean;
  /** A child whose call does not say where it runs, runs in the background. */
  readonly childrenInBackground?: boolean;
  /** Keeps what all agents together may take, where another process has the account. */
  readonly tree?: TreeBudget;
}

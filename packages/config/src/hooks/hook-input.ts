import { defined } from "@retinue/base/foundation/defined.ts";
/** One call of a tool, as hooks are informed of it. */
export interface CallPayload {
  readonly tool: string;
  readonly input: unknown;
  readonly callId: string;
  /** Whose tool it is, where it is one of an MCP server. */
  readonly server?: { readonly name: string; readonly source: string } | undefined;
}

/** The fields of each event that happens here, besides what all events have in common. */
export interface HookPayloads {
  readonly PreToolUse: CallPayload;
  readonly PostToolUse: CallPayload & {
    readonly response: unknown;
    readonly durationMs?: number | undefined;
  };
  readonly PostToolUseFailure: CallPayload & {
    readonly error: string;
    readonly isInterrupt?: boolean | undefined;
    readonly durationMs?: number | undefined;
  };
  readonly PermissionRequest: CallPayload;
  readonly Notification: {
    readonly message: string;
    readonly title?: string | undefined;
    readonly kind: string;
  };
  readonly UserPromptSubmit: { readonly prompt: string; readonly source?: string | undefined };
  readonly SessionStart: { readonly source: string; readonly model?: string | undefined };
  readonly SessionEnd: { readonly reason: string };
  readonly Stop: {
    readonly isRepeated: boolean;
    readonly lastMessage?: string | undefined;
    /** What continues when the agent has stopped; the hook gets it as it is. */
    readonly backgroundTasks?: readonly object[] | undefined;
  };
  readonly SubagentStart: { readonly agentId: string; readonly agentType: string };
  readonly SubagentStop: {
    readonly isRepeated: boolean;
    readonly agentId: string;
    readonly agentType: string;
    readonly agentTranscript: string;
    readonly lastMessage?: string | undefined;
    /** What the runtime vouches for; the hook gets it as it is. */
    readonly receipt?: unknown;
    /** What it has taken, under the names by which the hook gets it. */
    readonly spent?: object | undefined;
  };
  readonly PreCompact: { readonly trigger: string; readonly instructions: string | null };
  readonly PostCompact: { readonly trigger: string; readonly summary: string };
  readonly TeammateIdle: { readonly teammate: string; readonly team: string };
  readonly TaskCreated: TaskPayload;
  readonly TaskCompleted: TaskPayload;
}

/** A task of a team's board, as hooks see it. */
interface TaskPayload {
  readonly taskId: string;
  readonly subject: string;
  readonly description?: string | undefined;
  /** Who created or completes it, and in which team. */
  readonly teammate?: string | undefined;
  readonly team?: string | undefined;
  /** Of one that is completed: what the runtime vouches for; the hook gets it as it is. */
  readonly receipt?: unknown;
}

/** The events that happen here; the other known ones are only read. */
export type FiredEvent = keyof HookPayloads & HookEventName;

/** Who and where: the same for every event of one agent. */
export interface HookSituation {
  readonly sessionId: string;
  /** Always the main session's file, also inside a subagent. */
  readonly transcript: string;
  readonly cwd: string;
  readonly permissionMode?: string;
  /** Absent for the main agent, so that its presence shows a hook that a subagent calls. */
  readonly agentId?: string;
  readonly agentType?: string;
}

/** The JSON a hook reads. */
export function hookInput<Event extends FiredEvent>(
  event: Event,
  payload: HookPayloads[Event],
  situation: HookSituation,
): Readonly<Record<string, unknown>> {
  return defined({
    session_id: situation.sessionId,
    transcript_path: situation.transcript,
    cwd: situation.cwd,
    permission_mode: situation.permissionMode,
    agent_id: situation.agentId,
    agent_type: situation.agentType,
    hook_event_name: event,
    ...eventTable[event].fields(payload),
  });
}

/** What a matcher is compared with; undefined for events that have none. */
export function hookSubject<Event extends FiredEvent>(
  event: Event,
  payload: HookPayloads[Event],
): string | undefined {
  return eventTable[event].subject?.(payload);
}

interface EventShape<Payload> {
  readonly fields: (payload: Payload) => Readonly<Record<string, unknown>>;
  readonly subject?: (payload: Payload) => string;
}

type EventTable = { readonly [Event in FiredEvent]: EventShape<HookPayloads[Event]> };

const toolName = ({ tool }: CallPayload): string => tool;

const eventTable: EventTable = {
  PreToolUse: { fields: callFields, subject: toolName },
  PostToolUse: {
    fields: ({ response, durationMs, ...call }) => ({
      ...callFields(call),
      tool_response: response,
      duration_ms: durationMs,
    }),
    subject: toolName,
  },
  PostToolUseFailure: {
    fields: ({ error, isInterrupt, durationMs, ...call }) => ({
      ...callFields(call),
      error,
      is_interrupt: isInterrupt,
      duration_ms: durationMs,
    }),
    subject: toolName,
  },
  PermissionRequest: { fields: callFields, subject: toolName },
  Notification: {
    fields: ({ message, title, kind }) => ({ message, title, notification_type: kind }),
    subject: ({ kind }) => kind,
  },
  UserPromptSubmit: { fields: ({ prompt, source }) => ({ prompt, source }) },
  SessionStart: { fields: ({ source, model }) => ({ source, model }), subject: ({ source }) => source },
  SessionEnd: { fields: ({ reason }) => ({ reason }), subject: ({ reason }) => reason },
  Stop: {
    fields: ({ isRepeated, lastMessage, backgroundTasks }) => ({
      stop_hook_active: isRepeated,
      last_assistant_message: lastMessage,
      background_tasks: backgroundTasks,
    }),
  },
  SubagentStart: {
    fields: ({ agentId, agentType }) => ({ agent_id: agentId, agent_type: agentType }),
    subject: ({ agentType }) => agentType,
  },
  SubagentStop: {
    fields: ({ isRepeated, agentId, agentType, agentTranscript, lastMessage, receipt, spent }) => ({
      stop_hook_active: isRepeated,
      agent_id: agentId,
      agent_type: agentType,
      agent_transcript_path: agentTranscript,
      last_assistant_message: lastMessage,
      receipt,
      ...spent,
    }),
    subject: ({ agentType }) => agentType,
  },
  PreCompact: {
    fields: ({ trigger, instructions }) => ({ trigger, custom_instructions: instructions }),
    subject: ({ trigger }) => trigger,
  },
  PostCompact: {
    fields: ({ trigger, summary }) => ({ trigger, compact_summary: summary }),
    subject: ({ trigger }) => trigger,
  },
  TeammateIdle: { fields: ({ teammate, team }) => ({ teammate_name: teammate, team_name: team }) },
  TaskCreated: { fields: taskFields },
  TaskCompleted: { fields: taskFields },
};

function taskFields({ taskId, subject, description, teammate, team, receipt }: TaskPayload) {
  return {
    task_id: taskId,
    task_subject: subject,
    task_description: description,
    teammate_name: teammate,
    team_name: team,
    receipt,
  };
}

// Object.keys widens to string; the keys of this table are exactly the events that can be fired.
export const firedHookEvents = Object.keys(eventTable) as readonly FiredEvent[];

export function isFiredEvent(event: HookEventName): event is FiredEvent {
  return Object.hasOwn(eventTable, event);
}

/** `tool` is beside `tool_name`, because scripts ask for either. */
function callFields({ tool, input, callId, server }: CallPayload): Readonly<Record<string, unknown>> {
  return { tool_name: tool, tool, tool_input: input, tool_use_id: callId, mcp_server: server };
}

/** What the matcher of a hook is compared with; `none` means the event has no matcher. */
type HookMatchSubject =
  | "tool name"
  | "session source"
  | "end reason"
  | "trigger"
  | "agent type"
  | "notification type"
  | "command name"
  | "error type"
  | "config source"
  | "load reason"
  | "server name"
  | "file name"
  | "add source"
  | "model"
  | "none";

interface HookEventInfo {
  readonly matches: HookMatchSubject;
}

/** Every event a hooks object may name. Those that happen here have a row in `hook-input.ts`; nothing else can fire. */
export const hookEvents = {
  PreToolUse: { matches: "tool name" },
  PostToolUse: { matches: "tool name" },
  PostToolUseFailure: { matches: "tool name" },
  PostToolBatch: { matches: "none" },
  PermissionRequest: { matches: "tool name" },
  PermissionDenied: { matches: "tool name" },
  Notification: { matches: "notification type" },
  UserPromptSubmit: { matches: "none" },
  UserPromptExpansion: { matches: "command name" },
  SessionStart: { matches: "session source" },
  SessionEnd: { matches: "end reason" },
  Setup: { matches: "trigger" },
  Stop: { matches: "none" },
  StopFailure: { matches: "error type" },
  SubagentStart: { matches: "agent type" },
  SubagentStop: { matches: "agent type" },
  PreCompact: { matches: "trigger" },
  PostCompact: { matches: "trigger" },
  PreModelSwitch: { matches: "model" },
  PostModelSwitch: { matches: "model" },
  TaskCreated: { matches: "none" },
  TaskCompleted: { matches: "none" },
  TeammateIdle: { matches: "none" },
  Elicitation: { matches: "server name" },
  ElicitationResult: { matches: "server name" },
  ConfigChange: { matches: "config source" },
  InstructionsLoaded: { matches: "load reason" },
  CwdChanged: { matches: "none" },
  FileChanged: { matches: "file name" },
  DirectoryAdded: { matches: "add source" },
  WorktreeCreate: { matches: "none" },
  WorktreeRemove: { matches: "none" },
  MessageDisplay: { matches: "none" },
} as const satisfies Readonly<Record<string, HookEventInfo>>;

type HookEventName = keyof typeof hookEvents;

export function isHookEventName(name: unknown): name is HookEventName {
  return typeof name === "string" && Object.hasOwn(hookEvents, name);
}

// Object.keys widens to string; the keys of a constant object are exactly its type's keys.
export const hookEventNames = Object.keys(hookEvents) as readonly HookEventName[];

/** What every hook reads. */
interface CommonInput<Event extends FiredEvent> {
  readonly hook_event_name: Event;
  readonly session_id: string;
  readonly transcript_path: string;
  readonly cwd: string;
  readonly permission_mode?: string | undefined;
  /** Present inside a child agent. */
  readonly agent_id?: string | undefined;
  readonly agent_type?: string | undefined;
}

interface CallInput {
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly tool_use_id: string;
  /** Whose tool it is, where it is one of an MCP server. */
  readonly mcp_server?: { readonly name: string; readonly source: string } | undefined;
}

interface TaskInput {
  readonly task_id: string;
  readonly task_subject: string;
  readonly task_description?: string | undefined;
  readonly teammate_name?: string | undefined;
  readonly team_name?: string | undefined;
  readonly receipt?: unknown;
}

interface TokenInput {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
}

interface RunningTaskInput {
  readonly id: string;
  readonly type: "subagent" | "shell" | "workflow";
  readonly status: "running";
  readonly description: string;
  readonly command?: string | undefined;
  readonly agent_type?: string | undefined;
  /** Of a workflow. */
  readonly name?: string | undefined;
}

interface StopInput {
  readonly stop_hook_active: boolean;
  readonly last_assistant_message?: string | undefined;
}

/** The further fields of each event. */
interface SpecificInputs {
  readonly PreToolUse: CallInput;
  readonly PostToolUse: CallInput & {
    readonly tool_response: unknown;
    readonly duration_ms?: number | undefined;
  };
  readonly PostToolUseFailure: CallInput & {
    readonly error: string;
    readonly is_interrupt?: boolean | undefined;
    readonly duration_ms?: number | undefined;
  };
  readonly PermissionRequest: CallInput;
  readonly Notification: {
    readonly message: string;
    readonly title?: string | undefined;
    readonly notification_type: string;
  };
  readonly UserPromptSubmit: { readonly prompt: string };
  readonly SessionStart: {
    readonly source: "startup" | "resume" | "clear" | "compact" | "fork";
    readonly model?: string | undefined;
  };
  readonly SessionEnd: { readonly reason: "clear" | "logout" | "prompt_input_exit" | "other" };
  readonly Stop: StopInput & {
    /** Agents, commands and workflows that continue in the background. */
    readonly background_tasks?: RunningTaskInput[] | undefined;
  };
  readonly SubagentStart: { readonly agent_id: string; readonly agent_type: string };
  readonly SubagentStop: StopInput & {
    readonly agent_id: string;
    readonly agent_type: string;
    readonly agent_transcript_path: string;
    /** What the runtime vouches for: status, checks, tree, changed files. */
    readonly receipt?: unknown;
    /** What it has taken in this run; absent where another process ran it. */
    readonly usage?: TokenInput;
    /** US dollars; absent where a price is not known. */
    readonly total_cost_usd?: number;
    readonly num_turns?: number;
    readonly tool_uses?: number;
    readonly model_usage?: Readonly<Record<string, TokenInput & { readonly cost_usd?: number }>>;
  };
  readonly PreCompact: {
    readonly trigger: "auto" | "manual";
    readonly custom_instructions: string | null;
  };
  readonly PostCompact: { readonly trigger: "auto" | "manual"; readonly compact_summary: string };
  readonly TeammateIdle: { readonly teammate_name: string; readonly team_name: string };
  readonly TaskCreated: TaskInput;
  readonly TaskCompleted: TaskInput;
}

/** What a hook reads, by event. */
export type HookInput<Event extends FiredEvent = FiredEvent> = Event extends keyof SpecificInputs
  ? CommonInput<Event> & SpecificInputs[Event]
  : CommonInput<Event> & Readonly<Record<string, unknown>>;

/** What a hook answers; nothing means: continue. */
export interface HookOutput {
  /** False ends the run. */
  readonly continue?: boolean | undefined;
  readonly stopReason?: string | undefined;
  readonly systemMessage?: string | undefined;
  readonly decision?: "approve" | "block" | "allow" | "ask" | "deny" | undefined;
  readonly reason?: string | undefined;
  readonly hookSpecificOutput?:
    | {
        readonly hookEventName?: FiredEvent | undefined;
        readonly permissionDecision?: "allow" | "deny" | "ask" | undefined;
        readonly permissionDecisionReason?: string | undefined;
        readonly updatedInput?: Readonly<Record<string, unknown>> | undefined;
        readonly additionalContext?: string | undefined;
        readonly [key: string]: unknown;
      }
    | undefined;
}

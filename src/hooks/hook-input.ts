import type { HookEventName } from "./hook-events.ts";

/** One call of a tool, as hooks are informed of it. */
export interface CallPayload {
  readonly tool: string;
  readonly input: unknown;
  readonly callId: string;
  /** Whose tool it is, where it is one of an MCP server. */
  readonly server?: { readonly name: string; readonly source: string };
}

/** What is said about each event that happens here, besides what all events have in common. */
export interface HookPayloads {
  readonly PreToolUse: CallPayload;
  readonly PostToolUse: CallPayload & { readonly response: unknown; readonly durationMs?: number };
  readonly PostToolUseFailure: CallPayload & {
    readonly error: string;
    readonly isInterrupt?: boolean;
    readonly durationMs?: number;
  };
  readonly PermissionRequest: CallPayload;
  readonly Notification: { readonly message: string; readonly title?: string; readonly kind: string };
  readonly UserPromptSubmit: { readonly prompt: string; readonly source?: string };
  readonly SessionStart: { readonly source: string; readonly model?: string };
  readonly SessionEnd: { readonly reason: string };
  readonly Stop: { readonly isRepeated: boolean; readonly lastMessage?: string };
  readonly SubagentStart: { readonly agentId: string; readonly agentType: string };
  readonly SubagentStop: {
    readonly isRepeated: boolean;
    readonly agentId: string;
    readonly agentType: string;
    readonly agentTranscript: string;
    readonly lastMessage?: string;
  };
  readonly PreCompact: { readonly trigger: string; readonly instructions: string | null };
  readonly PostCompact: { readonly trigger: string; readonly summary: string };
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
  return withoutAbsent({
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
    fields: ({ isRepeated, lastMessage }) => ({
      stop_hook_active: isRepeated,
      last_assistant_message: lastMessage,
    }),
  },
  SubagentStart: {
    fields: ({ agentId, agentType }) => ({ agent_id: agentId, agent_type: agentType }),
    subject: ({ agentType }) => agentType,
  },
  SubagentStop: {
    fields: ({ isRepeated, agentId, agentType, agentTranscript, lastMessage }) => ({
      stop_hook_active: isRepeated,
      agent_id: agentId,
      agent_type: agentType,
      agent_transcript_path: agentTranscript,
      last_assistant_message: lastMessage,
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
};

// Object.keys widens to string; the keys of this table are exactly the events that can be fired.
export const firedHookEvents = Object.keys(eventTable) as readonly FiredEvent[];

export function isFiredEvent(event: HookEventName): event is FiredEvent {
  return Object.hasOwn(eventTable, event);
}

/** `tool` is beside `tool_name`, because scripts ask for either. */
function callFields({ tool, input, callId, server }: CallPayload): Readonly<Record<string, unknown>> {
  return { tool_name: tool, tool, tool_input: input, tool_use_id: callId, mcp_server: server };
}

function withoutAbsent(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

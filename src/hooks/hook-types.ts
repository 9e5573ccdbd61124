import type { FiredEvent } from "./hook-input.ts";

/** What every hook reads. */
interface CommonInput<Event extends FiredEvent> {
  readonly hook_event_name: Event;
  readonly session_id: string;
  readonly transcript_path: string;
  readonly cwd: string;
  readonly permission_mode?: string;
  /** Present inside a child agent. */
  readonly agent_id?: string;
  readonly agent_type?: string;
}

interface CallInput {
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly tool_use_id: string;
}

interface StopInput {
  readonly stop_hook_active: boolean;
  readonly last_assistant_message?: string;
}

/** What each event says besides. */
interface SpecificInputs {
  readonly PreToolUse: CallInput;
  readonly PostToolUse: CallInput & { readonly tool_response: unknown };
  readonly PostToolUseFailure: CallInput & { readonly error: string };
  readonly PermissionRequest: CallInput;
  readonly Notification: {
    readonly message: string;
    readonly title?: string;
    readonly notification_type: string;
  };
  readonly UserPromptSubmit: { readonly prompt: string };
  readonly SessionStart: { readonly source: string; readonly model?: string };
  readonly SessionEnd: { readonly reason: string };
  readonly Stop: StopInput;
  readonly SubagentStart: { readonly agent_id: string; readonly agent_type: string };
  readonly SubagentStop: StopInput & { readonly agent_id: string; readonly agent_type: string };
  readonly PreCompact: { readonly trigger: string; readonly custom_instructions: string | null };
}

/** What a hook reads, by event. */
export type HookInput<Event extends FiredEvent = FiredEvent> = Event extends keyof SpecificInputs
  ? CommonInput<Event> & SpecificInputs[Event]
  : CommonInput<Event> & Readonly<Record<string, unknown>>;

/** What a hook answers; nothing means: continue. */
export interface HookOutput {
  /** False ends the run. */
  readonly continue?: boolean;
  readonly stopReason?: string;
  readonly systemMessage?: string;
  readonly decision?: "approve" | "block" | "allow" | "ask" | "deny";
  readonly reason?: string;
  readonly hookSpecificOutput?: {
    readonly hookEventName?: FiredEvent;
    readonly permissionDecision?: "allow" | "deny" | "ask";
    readonly permissionDecisionReason?: string;
    readonly updatedInput?: Readonly<Record<string, unknown>>;
    readonly additionalContext?: string;
    readonly [key: string]: unknown;
  };
}

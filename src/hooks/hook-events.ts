/** What the matcher of a hook is compared with; `none` means the event has no matcher. */
export type HookMatchSubject =
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

export interface HookEventInfo {
  readonly matches: HookMatchSubject;
  /** False for events that are known from people's files but never happen here. */
  readonly fired: boolean;
}

/** Every event a hooks object may name. */
export const hookEvents = {
  PreToolUse: { matches: "tool name", fired: true },
  PostToolUse: { matches: "tool name", fired: true },
  PostToolUseFailure: { matches: "tool name", fired: true },
  PostToolBatch: { matches: "none", fired: false },
  PermissionRequest: { matches: "tool name", fired: true },
  PermissionDenied: { matches: "tool name", fired: false },
  Notification: { matches: "notification type", fired: true },
  UserPromptSubmit: { matches: "none", fired: true },
  UserPromptExpansion: { matches: "command name", fired: false },
  SessionStart: { matches: "session source", fired: true },
  SessionEnd: { matches: "end reason", fired: true },
  Setup: { matches: "trigger", fired: false },
  Stop: { matches: "none", fired: true },
  StopFailure: { matches: "error type", fired: false },
  SubagentStart: { matches: "agent type", fired: true },
  SubagentStop: { matches: "agent type", fired: true },
  PreCompact: { matches: "trigger", fired: true },
  PostCompact: { matches: "trigger", fired: true },
  PreModelSwitch: { matches: "model", fired: false },
  PostModelSwitch: { matches: "model", fired: false },
  TaskCreated: { matches: "none", fired: true },
  TaskCompleted: { matches: "none", fired: true },
  TeammateIdle: { matches: "none", fired: true },
  Elicitation: { matches: "server name", fired: false },
  ElicitationResult: { matches: "server name", fired: false },
  ConfigChange: { matches: "config source", fired: false },
  InstructionsLoaded: { matches: "load reason", fired: false },
  CwdChanged: { matches: "none", fired: false },
  FileChanged: { matches: "file name", fired: false },
  DirectoryAdded: { matches: "add source", fired: false },
  WorktreeCreate: { matches: "none", fired: false },
  WorktreeRemove: { matches: "none", fired: false },
  MessageDisplay: { matches: "none", fired: false },
} as const satisfies Readonly<Record<string, HookEventInfo>>;

export type HookEventName = keyof typeof hookEvents;

export function isHookEventName(name: unknown): name is HookEventName {
  return typeof name === "string" && Object.hasOwn(hookEvents, name);
}

// Object.keys widens to string; the keys of a constant object are exactly its type's keys.
export const hookEventNames = Object.keys(hookEvents) as readonly HookEventName[];

export const firedHookEvents: readonly HookEventName[] = hookEventNames.filter(
  (name) => hookEvents[name].fired,
);

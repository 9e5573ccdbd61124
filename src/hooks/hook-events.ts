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

export type HookEventName = keyof typeof hookEvents;

export function isHookEventName(name: unknown): name is HookEventName {
  return typeof name === "string" && Object.hasOwn(hookEvents, name);
}

// Object.keys widens to string; the keys of a constant object are exactly its type's keys.
export const hookEventNames = Object.keys(hookEvents) as readonly HookEventName[];

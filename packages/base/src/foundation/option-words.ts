/** What a mode means for a call that no rule matches; the ranking from narrow to wide is in docs/permissions.md. */
export const permissionModes = [
  "default",
  "acceptEdits",
  "plan",
  "dontAsk",
  "bypassPermissions",
  "delegate",
  "auto",
] as const;

/** `auto` is accepted from files people have; without a classifier it asks like `default`. */
export type PermissionMode = (typeof permissionModes)[number];

/** The mode a text names; `manual` is another word for `default`. Undefined when it names none. */
export function parsePermissionMode(text: string): PermissionMode | undefined {
  if (text === "manual") return "default";
  return permissionModes.find((mode) => mode === text);
}

/** How hard a model thinks. */
export const effortLevels = ["low", "medium", "high", "xhigh", "max"] as const;

/** Whose agent files can be read, by product; `agents` is the shared folder `.agents/agents`. */
export const agentSources = [
  "claude",
  "agents",
  "opencode",
  "codex",
  "copilot",
  "gemini",
  "qwen",
  "cursor",
  "factory",
  "kiro",
  "cline",
  "goose",
  "pi",
] as const;

/** The settings files that can be left out. */
export const settingSources = ["user", "project", "local"] as const;
export type SettingSource = (typeof settingSources)[number];

/** What a mode means for a call no rule speaks of; the ranking from narrow to wide is in docs/permissions.md. */
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

/** A policy under another mode; without one it stays as it is. */
export function withMode<Policy extends { readonly mode: PermissionMode }>(
  policy: Policy,
  mode: PermissionMode | undefined,
): Policy {
  return mode === undefined || mode === policy.mode ? policy : { ...policy, mode };
}

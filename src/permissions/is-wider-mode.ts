import { type PermissionMode, parsePermissionMode, permissionModes } from "./permission-mode.ts";

/** The mode a person meant who did not respect upper and lower case or put a hyphen in: `Plan`, `accept-edits`. */
export function parseModeLoosely(text: string): PermissionMode | undefined {
  const exact = parsePermissionMode(text);
  if (exact !== undefined) return exact;
  const bare = text.toLowerCase().replace(/[-_\s]/g, "");
  return permissionModes.find((mode) => mode.toLowerCase() === bare);
}

export function isWiderMode(mode: PermissionMode, than: PermissionMode): boolean {
  return modeRank[mode] > modeRank[than];
}

/** From narrow to wide. */
const modeRank: Readonly<Record<PermissionMode, number>> = {
  plan: 0,
  dontAsk: 1,
  default: 2,
  delegate: 3,
  acceptEdits: 3,
  auto: 4,
  bypassPermissions: 5,
};

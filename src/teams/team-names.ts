import { refuseAgentName } from "../definitions/refuse-agent-name.ts";

/** The member name of the lead, as existing team files have it. */
export const leadName = "team-lead";
/** The sender of what the runtime itself reports. */
export const systemName = "system";
/** The sender of what a person types to a member. */
export const personName = "user";

const maxName = 64;

/** Why a text cannot name a team; such a name becomes the name of a directory. */
export function refuseTeamName(name: string): string | undefined {
  const refusal = refuseAgentName(name);
  if (refusal !== undefined) return refusal.reason;
  if (name.length > maxName) return `it is longer than ${maxName} characters`;
  if (!/^[\p{L}\p{N}][\p{L}\p{N} ._-]*$/u.test(name))
    return "it may contain letters, digits, spaces, dots, hyphens and underscores, and starts with a letter or digit";
  return /[ .]$/.test(name) ? "it ends with a dot or a space" : undefined;
}

const reserved: ReadonlySet<string> = new Set([leadName, systemName, personName, "lead", "all"]);

/** Why a text cannot name a new member of a team with these members. */
export function refuseMemberName(name: string, taken: readonly string[]): string | undefined {
  const refusal = refuseTeamName(name);
  if (refusal !== undefined) return refusal;
  if (reserved.has(name.toLowerCase())) return "the name is reserved";
  // File systems that ignore case would give both the same inbox.
  const twin = taken.find((other) => other.toLowerCase() === name.toLowerCase());
  return twin === undefined ? undefined : `the team has a member ${JSON.stringify(twin)} already`;
}

/** The team that a session has without creating one. */
export function implicitTeamName(sessionId: string): string {
  return `session-${sessionId.slice(0, 8)}`;
}

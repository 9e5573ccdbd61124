import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { refuseAgentName } from "@retinue/config/agents/refuse-agent-name.ts";
import { isSessionId } from "../journal/session-files.ts";

/** A member as the team's file names it. */
export interface TeamMember {
  /** `<name>@<team>`. */
  readonly agentId: string;
  readonly name: string;
  readonly agentType?: string;
  readonly model?: string;
  readonly prompt?: string;
  readonly color?: string;
  readonly joinedAt: number;
  readonly tmuxPaneId: string;
  readonly backendType?: string;
  readonly cwd: string;
  readonly subscriptions: readonly string[];
  /** It works now. */
  readonly isActive?: boolean;
  /** The id of its agent in the lead's session; absent for the lead and for members of other programs. */
  readonly taskId?: string;
  /** `ended`: it runs nowhere, and a message resumes it. */
  readonly state?: MemberState;
  /** How it ended last, as a sentence. */
  readonly lastEnding?: string;
  /** Tasks it was offered while it was idle. */
  readonly offered?: readonly string[];
  /** The plan it has handed in and waits for an answer to. */
  readonly planRequest?: string;
  /** The lead has approved a plan of it, so it no longer only plans. */
  readonly planApproved?: boolean;
  /** The process that runs it, where that is one of its own. */
  readonly pid?: number;
}

type MemberState = "working" | "idle" | "ended";

export interface TeamConfig {
  readonly name: string;
  readonly description: string;
  readonly createdAt: number;
  readonly leadAgentId: string;
  readonly leadSessionId: string;
  readonly members: readonly TeamMember[];
  /** The folder of the lead's session, so that commands find its transcripts. */
  readonly cwd?: string;
  /** Whose tasks the team shares, where that is not its own list. */
  readonly taskList?: string;
}

/** Reads a team's file; a text says what is wrong. Unknown keys are kept, unreadable members left out. */
export function readTeamConfig(value: unknown, name: string): TeamConfig | string {
  if (!isRecord(value)) return "expected an object";
  const { description, createdAt, leadAgentId, leadSessionId, members, teamName: _old, ...rest } = value;
  if (typeof leadSessionId !== "string" || !isSessionId(leadSessionId))
    return "expected leadSessionId, the id of a session";
  if (members !== undefined && !Array.isArray(members)) return "expected a list of members";
  return {
    ...rest,
    name,
    description: typeof description === "string" ? description : "",
    createdAt: typeof createdAt === "number" ? createdAt : 0,
    leadAgentId: typeof leadAgentId === "string" ? leadAgentId : `${leadName}@${name}`,
    leadSessionId,
    members: (members ?? []).flatMap(readMember),
  };
}

function readMember(value: unknown): readonly TeamMember[] {
  if (!isRecord(value) || typeof value["name"] !== "string" || value["name"] === "") return [];
  const { joinedAt, tmuxPaneId, cwd, subscriptions } = value;
  return [
    {
      // What other programs add is kept; the fields that are read here are checked where they are used.
      ...(value as JsonRecord),
      agentId: String(value["agentId"] ?? value["name"]),
      name: value["name"],
      joinedAt: typeof joinedAt === "number" ? joinedAt : 0,
      tmuxPaneId: typeof tmuxPaneId === "string" ? tmuxPaneId : "",
      cwd: typeof cwd === "string" ? cwd : "",
      subscriptions: Array.isArray(subscriptions) ? subscriptions.map(String) : [],
    },
  ];
}

export function findMember(config: TeamConfig, name: string): TeamMember | undefined {
  return config.members.find((member) => member.name === name);
}

export function withMember(config: TeamConfig, member: TeamMember): TeamConfig {
  const others = config.members.filter(({ name }) => name !== member.name);
  const at = config.members.findIndex(({ name }) => name === member.name);
  const members = at === -1 ? [...others, member] : others.toSpliced(at, 0, member);
  return { ...config, members };
}

export function withoutMember(config: TeamConfig, name: string): TeamConfig {
  return { ...config, members: config.members.filter((member) => member.name !== name) };
}

/** Everyone but the lead. */
export function teammatesOf({ members }: TeamConfig): readonly TeamMember[] {
  return members.filter(({ name }) => name !== leadName);
}

/** `working` and `idle` members have an agent that runs somewhere. */
export function stateOf({ state, isActive }: TeamMember): MemberState {
  return state ?? (isActive === false ? "idle" : "working");
}

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
  return twin === undefined ? undefined : `the team already has a member ${JSON.stringify(twin)}`;
}

/** The team that a session has without creating one. */
export function implicitTeamName(sessionId: string): string {
  return `session-${sessionId.slice(0, 8)}`;
}

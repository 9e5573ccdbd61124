import {
  type PermissionMode,
  parsePermissionMode,
  permissionModes,
} from "@retinue/base/foundation/option-words.ts";
import type { PermissionRule } from "./permission-rule.ts";

export {
  type PermissionMode,
  parsePermissionMode,
  permissionModes,
} from "@retinue/base/foundation/option-words.ts";

/** A rule with the directory that its `/path` form starts at. */
export interface PolicyRule {
  readonly rule: PermissionRule;
  readonly anchor: string;
  /** Other paths of the same directory, as through links. */
  readonly otherAnchors?: readonly string[] | undefined;
  /** The file it is in, for explanations. */
  readonly from?: string | undefined;
  /** Why it is there, for explanations, where it is the runtime's own and cannot be found in a file. */
  readonly reason?: string | undefined;
}

/** A tool an agent has, and how far. */
export interface ToolScope {
  readonly name: string;
  /** Only calls that match one of these specifiers; absent means every call. */
  readonly allowOnly?: readonly string[] | undefined;
  /** Calls that match one of these specifiers are refused. */
  readonly deny?: readonly string[] | undefined;
  /** It works only inside the agent's memory directory. */
  readonly confinedTo?: "memory" | undefined;
  /** Inside the memory directory it works although `allowOnly` does not name it. */
  readonly alsoIn?: "memory" | undefined;
}

/** The tools of one agent; its relative specifiers start at `anchor`. */
export interface ToolScopes {
  readonly anchor: string;
  readonly tools: readonly ToolScope[];
  /** Absolute, its parent with links followed; only here do tools confined to memory work. */
  readonly memoryDirectory?: string | undefined;
  /** The agent promises to change nothing: its commands only read, whatever rules and modes allow. */
  readonly onlyReads?: true | undefined;
  /** Calls that `disallowedTools` excludes, as rules; agents below may not make them either. */
  readonly deny?: readonly string[] | undefined;
  /** Entries of `disallowedTools` that remove whole tools; agents below are planned without them. */
  readonly removes?: readonly string[] | undefined;
  /** A subagent that starts agents: they may make no call that it may not make. */
  readonly limitsBelow?: true | undefined;
}

/** What commands may do because they run inside a sandbox. */
export interface SandboxRights {
  /** A command inside the sandbox needs no rule. */
  readonly autoAllow: boolean;
  /** Patterns of commands that run outside it. */
  readonly excludedCommands: readonly string[];
  /** Whether a call may ask to run outside it. */
  readonly allowUnsandboxed: boolean;
}

/** Settings that confine calls to the working directories, whatever rules and people allow. */
interface Confinement {
  /** Reads are confined, with these other files and folders open; absent means they are not confined. */
  readonly readsExcept?: readonly string[] | undefined;
  readonly writes?: boolean | undefined;
}

/** The rules of a run, by what they do. */
interface PolicyRules {
  readonly allow: readonly PolicyRule[];
  readonly ask: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
}

/** What an agent that someone waits for has, and one in the background only where it is listed. */
export const backgroundRights = ["mcpTools", "questions"] as const;
export type BackgroundRight = (typeof backgroundRights)[number];

/** What a run may do, as plain data. */
export interface PermissionPolicy extends PolicyRules {
  readonly mode: PermissionMode;
  readonly workingDirectories: readonly string[];
  readonly home: string;
  /** A person trusts the folder, so that git may obey its configuration; absent means no. */
  readonly trusted?: boolean | undefined;
  /** What runs without the yes of a person or a rule is isolated by the system; looked for where the folder is not trusted. */
  readonly walled?: boolean | undefined;
  /** On `darwin` and `win32`, names that differ only in case are one file. */
  readonly platform?: string | undefined;
  /** The modes of the agents above: what one of them refuses stays refused. */
  readonly outerModes?: readonly PermissionMode[] | undefined;
  /** The tools of this agent, last, after those of the agents above it, of which only the exclusions apply here, unless one limits those below it. */
  readonly toolScopes?: readonly ToolScopes[] | undefined;
  /** No caller waits for this agent: nothing is asked, and tools of MCP servers are not there, but for what it keeps. */
  readonly background?: boolean | undefined;
  /** What it has in the background all the same; absent: nothing. */
  readonly backgroundKeeps?: readonly BackgroundRight[] | undefined;
  readonly sandbox?: SandboxRights | undefined;
  readonly confinement?: Confinement | undefined;
  /** What would have to be asked is denied. */
  readonly deniesInsteadOfAsking?: boolean | undefined;
  /** Files and folders of this product that cannot be recognized by their names: another home for settings and sessions, files of options. */
  readonly steering?: readonly string[] | undefined;
  /** Files that \`acceptEdits\` does not cover by what they are, and whose change was allowed in this session. */
  readonly acceptedFiles?: readonly string[] | undefined;
}

/**
 * What let a call through. `read-only`: it can only read, inside the working directories or where rules let it read;
 * `internal`: it changes nothing outside this run; `memory`: it stays in the agent's own memory. `person` and `program`
 * are the answers of the person or program that was asked.
 */
export type AllowedBy =
  | "read-only"
  | "internal"
  | "memory"
  | "rule"
  | "mode"
  | "hook"
  | "sandbox"
  | "person"
  | "program";

/** Whether a path is one of the directories or below one; compared by whole names. */
export function isInside(path: string, directories: readonly string[]): boolean {
  return directories.some(
    (directory) =>
      path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`),
  );
}

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

/** A policy under another mode; without one it stays as it is. */
export function withMode<Policy extends { readonly mode: PermissionMode }>(
  policy: Policy,
  mode: PermissionMode | undefined,
): Policy {
  return mode === undefined || mode === policy.mode ? policy : { ...policy, mode };
}

/** Whether something that agents in the background do not have is missing for one. */
export function isUnavailableInBackground(
  { background, backgroundKeeps = [] }: Pick<PermissionPolicy, "background" | "backgroundKeeps">,
  right: BackgroundRight,
): boolean {
  return background === true && !backgroundKeeps.includes(right);
}

import type { PermissionMode } from "./permission-mode.ts";
import type { PermissionRule } from "./rules/parse-rule.ts";

/** A rule with the directory that its `/path` form starts at. */
export interface PolicyRule {
  readonly rule: PermissionRule;
  readonly anchor: string;
  /** Other paths of the same directory, as through links. */
  readonly otherAnchors?: readonly string[];
  /** The file it is in, for explanations. */
  readonly from?: string;
}

/** A tool an agent has, and how far. */
export interface ToolScope {
  readonly name: string;
  /** Only calls that match one of these specifiers; absent means every call. */
  readonly allowOnly?: readonly string[];
  /** Calls that match one of these specifiers are refused. */
  readonly deny?: readonly string[];
  /** It works only inside the agent's memory directory. */
  readonly confinedTo?: "memory";
  /** Inside the memory directory it works although `allowOnly` does not name it. */
  readonly alsoIn?: "memory";
}

/** The tools of one agent; its relative specifiers start at `anchor`. */
export interface ToolScopes {
  readonly anchor: string;
  readonly tools: readonly ToolScope[];
  /** Absolute, its parent with links followed; only here do tools confined to memory work. */
  readonly memoryDirectory?: string;
  /** Calls that `disallowedTools` excludes, as rules; agents below may not make them either. */
  readonly deny?: readonly string[];
  /** Entries of `disallowedTools` that remove whole tools; agents below are planned without them. */
  readonly removes?: readonly string[];
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
export interface Confinement {
  /** Reads are confined, with these other files and folders open; absent means they are not confined. */
  readonly readsExcept?: readonly string[];
  readonly writes?: boolean;
}

/** What a run may do, as plain data. */
export interface PermissionPolicy {
  readonly mode: PermissionMode;
  readonly allow: readonly PolicyRule[];
  readonly ask: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  readonly workingDirectories: readonly string[];
  readonly home: string;
  /** A person trusts the folder, so that git may obey its configuration; absent means no. */
  readonly trusted?: boolean;
  /** On `darwin` and `win32`, names that differ only in case are one file. */
  readonly platform?: string;
  /** The modes of the agents above: what one of them refuses stays refused. */
  readonly outerModes?: readonly PermissionMode[];
  /** The tools of this agent, last, after those of the agents above it, of which only the exclusions apply here. */
  readonly toolScopes?: readonly ToolScopes[];
  /** No one waits for this agent: nothing is asked, and tools of MCP servers are not there. */
  readonly background?: boolean;
  readonly sandbox?: SandboxRights;
  readonly confinement?: Confinement;
  /** What would have to be asked is denied. */
  readonly deniesInsteadOfAsking?: boolean;
}

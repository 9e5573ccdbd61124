import type { Place } from "../foundation/diagnostic.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { AgentLimits } from "./agent-limits.ts";

/** Where definitions come from, highest rank first. */
export const agentScopes = ["managed", "session", "project", "user", "plugin", "builtin"] as const;
export type AgentScope = (typeof agentScopes)[number];

export type MemoryScope = "user" | "project" | "local";

/** An MCP server of a definition: one that is configured elsewhere, or one of its own. */
export type AgentMcpServer =
  | { readonly type: "reference"; readonly name: string; readonly tools?: readonly string[] }
  | { readonly type: "inline"; readonly name: string; readonly config: Readonly<Record<string, unknown>> };

/** What was in the file for one field, before it was understood. */
export interface WrittenField {
  readonly key: string;
  readonly value: unknown;
  readonly place?: Place;
}

export interface AgentSource {
  readonly scope: AgentScope;
  readonly file?: string;
  readonly plugin?: string;
  /** The id under which a plugin's agent is known: `plugin:name`. */
  readonly id?: string;
}

/** What a program's definition may compute when the agent is started. */
export interface PromptContext {
  readonly agent: string;
  readonly task: string;
  readonly directory: string;
}

/** How an agent's run ended, as requested to its definition. */
export interface AgentEnding {
  readonly agent: string;
  readonly agentId: string;
  readonly status: string;
  readonly text: string;
}

/** The parts of a program's definition that are code; files never have them. */
export interface AgentBehaviour {
  readonly computePrompt?: (context: PromptContext) => string | Promise<string>;
  readonly onEnd?: (ending: AgentEnding) => void | Promise<void>;
}

/** One agent type: what it is for, what it may do, how it should behave. Plain data but for `behaviour`. */
export interface AgentDefinition {
  readonly name: string;
  /** The delegation signal. Empty only in plugin files that have none. */
  readonly description: string;
  readonly prompt: string;
  /** Entries as written; absent means all of the parent's tools, empty means none. */
  readonly tools?: readonly string[];
  readonly disallowedTools?: readonly string[];
  /** As written: an alias, a full id, `provider/model` or `inherit`. */
  readonly model?: string;
  readonly permissionMode?: PermissionMode;
  readonly maxTurns?: number;
  readonly skills?: readonly string[];
  readonly mcpServers?: readonly AgentMcpServer[];
  readonly hooks?: readonly HookRule[];
  readonly memory?: MemoryScope;
  readonly color?: string;
  readonly background?: boolean;
  readonly effort?: string | number;
  /** `worktree`, or another word that a spawn must refuse rather than ignore. */
  readonly isolation?: string;
  readonly initialPrompt?: string;
  readonly omitClaudeMd?: boolean;
  readonly criticalSystemReminder_EXPERIMENTAL?: string;
  readonly forkContext?: boolean;
  /** What it may take; a field of this product alone. */
  readonly limits?: AgentLimits;
  readonly source: AgentSource;
  readonly behaviour?: AgentBehaviour;
  /** Every field of the file by its canonical name, so that tools can say where a value came from. */
  readonly written: Readonly<Record<string, WrittenField>>;
}

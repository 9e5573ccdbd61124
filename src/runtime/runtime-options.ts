import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AgentInput } from "../definitions/define-agent.ts";
import type { WaitClock } from "../foundation/wait-clock.ts";
import type { HookFunction } from "../hooks/run-handler.ts";
import type { Model } from "../model/model.ts";
import type { Approver } from "../permissions/approver.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { SessionLimitOptions } from "../planning/limit-plan.ts";
import type { Durability } from "../storage/durability.ts";
import type { Tool } from "../tools/tool.ts";
import type { ToolHost } from "../tools/tool-host.ts";
import type { CanUseTool } from "./create-authorize.ts";
import type { LiveControls } from "./live-controls.ts";
import type { OutputSchema } from "./typed-output.ts";

/** What a program says once, for all its sessions. Everything has a default: the process it runs in. */
export interface RuntimeOptions {
  readonly cwd?: string;
  readonly home?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly platform?: NodeJS.Platform;
  /** Agents of this program, above those in files of the project. */
  readonly agents?: readonly (AgentDefinition | AgentInput)[];
  /** Tools of this program, beside the built-in ones. */
  readonly extraTools?: readonly Tool[];
  /** Serves every session in place of what settings and the environment say. */
  readonly model?: Model;
  readonly settings?: string;
  readonly settingSources?: readonly ("user" | "project" | "local")[];
  readonly pluginDirectories?: readonly string[];
  readonly additionalDirectories?: readonly string[];
  /** MCP servers of this program, by name: as in an `.mcp.json`, or `{ type: "sdk", instance }` for one in its own memory. */
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  /** More MCP servers: JSON texts and paths of files. */
  readonly mcpConfig?: readonly string[];
  /** True leaves out every MCP server but those of `mcpServers` and `mcpConfig`. */
  readonly strictMcpConfig?: boolean;
  /** Whether the folder is trusted for this run; absent means what the person has accepted before. */
  readonly trusted?: boolean;
  /** Deny rules of every session; `Task(name)` also hides that agent. */
  readonly disallowedTools?: readonly string[];
  /** Decides by program what rules leave open; goes before the approver. */
  readonly canUseTool?: CanUseTool;
  /** Asks a person what rules leave open; without it such calls are refused. */
  readonly approver?: Approver;
  /** Hooks of this program, in code, beside those of files. */
  readonly hooks?: readonly HookFunction[];
  /** Hears what hooks say to the person, and which of them failed. */
  readonly notice?: (text: string) => void;
  /** What tools may ask of this program, such as putting a question to a person. */
  readonly host?: ToolHost;
  /** False keeps no transcripts. */
  readonly transcripts?: boolean;
  /**
   * `sync`: what is about to happen is on the disk itself before it happens, so that it survives a power cut. `os` leaves
   * that to the operating system, and survives only the end of the process. Absent: as settings say, else `sync`.
   */
  readonly durability?: Durability;
  /** How sessions say they were started. */
  readonly entrypoint?: string;
  readonly managedDirectory?: string;
  /** What this program changes while its session runs. */
  readonly live?: LiveControls;
  /** The time by which clocks of runs and pauses go; the real one when absent. */
  readonly clock?: WaitClock;
}

/** What is said for one session. */
export interface SessionOptions<Output = unknown> {
  /** The agent that is the main thread; its prompt takes the place of the usual one. */
  readonly agent?: string;
  /** An alias, an id, or `provider/model`. */
  readonly model?: string;
  readonly effort?: string | number;
  readonly permissionMode?: PermissionMode;
  readonly skipPermissions?: boolean;
  /** Which built-in tools exist; absent means all. */
  readonly tools?: readonly string[];
  /** Rules that allow calls without asking. */
  readonly allowedTools?: readonly string[];
  readonly disallowedTools?: readonly string[];
  readonly systemPrompt?: string;
  readonly appendSystemPrompt?: string;
  readonly maxTurns?: number;
  readonly maxBudget?: number;
  /** What each child, and the whole tree, may take; only ever narrows what settings say. */
  readonly limits?: SessionLimitOptions;
  /** A session's id or title to go on with. */
  readonly resume?: string;
  /** Go on with the newest session of this folder. */
  readonly continue?: boolean;
  /** Go on in a copy, leaving the resumed session as it is. */
  readonly forkSession?: boolean;
  readonly sessionId?: string;
  /** Takes the session and its children also from another process that holds them; what that one writes next is refused. */
  readonly takeOver?: boolean;
  /** Only children are run: the main conversation is neither read nor written, so another process may have it. */
  readonly childrenOnly?: boolean;
  /** An MCP tool, as `mcp__server__tool`, that answers in a person's place what rules leave open. */
  readonly permissionPromptTool?: string;
  /** Only plans are asked of it, so no MCP server is connected. */
  readonly planOnly?: boolean;
  /** False: a prompt such as `/name` is plain text and calls no skill. */
  readonly slashCommands?: boolean;
  /** The form the result must have. */
  readonly output?: OutputSchema<Output>;
}

export interface RunOptions<Output = unknown> extends SessionOptions<Output> {
  readonly signal?: AbortSignal;
}

import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AgentInput } from "../definitions/define-agent.ts";
import type { WaitClock } from "../foundation/wait-clock.ts";
import type { HookFunction } from "../hooks/run-handler.ts";
import type { Model } from "../model/model.ts";
import type { Approver } from "../permissions/approver.ts";
import type { Durability } from "../storage/durability.ts";
import type { Tool } from "../tools/tool.ts";
import type { ToolHost } from "../tools/tool-host.ts";
import type { CanUseTool } from "./agent/create-authorize.ts";
import type { SessionOptions } from "./runtime-options.ts";

/** The options of a runtime after they were checked and brought into one shape. */
export interface RuntimeSetup {
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
  /** Whether agents may form teams; absent: as the environment and settings say. */
  readonly teams?: boolean;
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
  /** The time by which clocks of runs and pauses go; the real one when absent. */
  readonly clock?: WaitClock;
}

/** The options of a session after they were checked and brought into one shape. */
export interface SessionSetup<Output = unknown> extends Omit<SessionOptions<Output>, "model" | "tools"> {
  /** An alias, an id, or `provider/model`. */
  readonly model?: string;
  /** Which built-in tools exist; absent means all. */
  readonly tools?: readonly string[];
}

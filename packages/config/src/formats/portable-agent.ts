import type { Diagnostic, DocumentPath, Place } from "@retinue/base/foundation/diagnostic.ts";
import type { AgentMcpServer } from "../agents/agent-definition.ts";
import type { FormatId } from "./format-facts.ts";

/** What a tool is for, whatever a product calls it. */
export type ToolClass =
  | "read"
  | "create"
  | "change"
  | "shell"
  | "find"
  | "search"
  | "list"
  | "fetch"
  | "websearch"
  | "subagent"
  | "todo"
  | "ask"
  | "skill"
  | "notebook"
  | "mcp"
  | "other";

/** One tool that an agent has or is denied, perhaps only some of its calls. */
export interface PortableTool {
  readonly class: ToolClass;
  /** Which calls: a pattern of commands, paths or agents. All of them when absent. */
  readonly pattern?: string | undefined;
  /** Of MCP tools: absent means every server, or every tool of the server. */
  readonly server?: string | undefined;
  readonly tool?: string | undefined;
  /** The word in the file. */
  readonly raw: string;
}

/** `ask` and absent both mean what holds in the session; products differ in what they call it. */
export type PortableMode = "ask" | "edit" | "plan" | "full" | "refuse" | "auto";

export interface PortableModel {
  readonly type: "tier" | "exact";
  readonly value: string;
  /** The format whose words these are: a name means nothing elsewhere. */
  readonly words: FormatId;
}

export interface PortableLimits {
  readonly turns?: number | undefined;
  readonly seconds?: number | undefined;
  readonly usd?: number | undefined;
  readonly tokens?: number | undefined;
}

/** One agent between two formats. Plain data. */
export interface PortableAgent {
  readonly id: string;
  readonly displayName?: string | undefined;
  readonly description: string;
  readonly prompt: string;
  /** The parent's when absent. */
  readonly model?: PortableModel | undefined;
  readonly effort?: string | undefined;
  /** Everything the parent has, or exactly these. */
  readonly tools: "all" | readonly PortableTool[];
  readonly deny: readonly PortableTool[];
  /** Servers by name or of its own; the parent's when absent. */
  readonly mcp?: readonly AgentMcpServer[] | undefined;
  readonly mode?: PortableMode | undefined;
  readonly limits: PortableLimits;
  readonly background?: boolean | undefined;
  readonly isolation?: string | undefined;
  readonly skills?: readonly string[] | undefined;
  /** As settings write them. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  readonly memory?: string | undefined;
  readonly color?: string | undefined;
  readonly origin: { readonly file?: string | undefined; readonly format: FormatId };
  /** Fields that mean something only to the product of the origin. */
  readonly rest: Readonly<Record<string, unknown>>;
  /** What its own product makes of the file, where it ignores a restriction that holds here. */
  readonly there?: Pick<PortableAgent, "tools" | "deny" | "mode"> | undefined;
}

/** Where the fields of an agent are in its file, by the name of the field in a definition. */
export type PlaceOf = (path: DocumentPath) => Place | undefined;

export interface ReadAgent {
  readonly agent: PortableAgent;
  /** By the canonical name of a field: `tools`, `model` … */
  readonly placeOf: PlaceOf;
}

export interface PortableReading {
  readonly agents: readonly ReadAgent[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface ReadContext {
  readonly file: string;
  /** The path below the folder of the place, with `/`. */
  readonly relative: string;
  /** The text of a file that this one names, where it lies within the same project. */
  readonly include?: ((path: string) => string | undefined) | undefined;
  /** Files with one of these paths below a folder between the root of the repository and that of the agent, outermost first. */
  readonly above?: ((paths: readonly string[]) => readonly FileAbove[]) | undefined;
}

export interface FileAbove {
  readonly file: string;
  /** Undefined where it is there and cannot be read. */
  readonly text: string | undefined;
}

/** One product's agent files: how they are read and written. */
export interface AgentFormat {
  readonly id: FormatId;
  readonly read: (text: string, context: ReadContext) => PortableReading;
  /** The whole text of a file. What it cannot say is found by reading it again. */
  readonly write: (agent: PortableAgent, note?: string) => string;
  /** Its file below the folder of the format. */
  readonly fileName: (agent: PortableAgent) => string;
  /** The most characters that the product takes of a prompt. */
  readonly promptAtMost?: number;
}

/** What conversions lose, by stable names. */
export const lossCodes = [
  "rights-widened",
  "tools-not-expressible",
  "tools-coarser",
  "pattern-dropped",
  "deny-dropped",
  "mode-dropped",
  "hooks-dropped",
  "limits-dropped",
  "mcp-dropped",
  "model-dropped",
  "memory-dropped",
  "isolation-dropped",
  "prompt-too-long",
  "name-changed",
  "description-cut",
  "unknown-kept",
  "field-dropped",
] as const;
export type LossCode = (typeof lossCodes)[number];

import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { ToolEffect } from "@retinue/base/foundation/tool-table.ts";
import { toolEffects } from "@retinue/base/foundation/tool-table.ts";
import type { NoteTemporary } from "@retinue/base/storage/create-temporary-notes.ts";
import type { CallPreview } from "@retinue/gate/approver.ts";
import type { McpIdentity } from "@retinue/gate/call-facts.ts";
import type { AllowedBy, JudgedCommand } from "@retinue/gate/decide.ts";
import type { Repeats } from "../conversation/interrupted-agent.ts";
import type { DocumentBlock, ImageBlock, TextBlock, ToolReferenceBlock } from "../conversation/message.ts";
import type { FileLedger, WriteInTurn } from "./file-ledger.ts";
import type { InputCheck, InputType } from "./input-type.ts";
import type { WallRules } from "./sandbox/wall-rules.ts";

/** What a tool may use while it runs. Everything it needs of the world comes through here. */
export interface ToolContext {
  /** Aborted when the run is stopped; a tool that waits must end with it. */
  readonly signal: AbortSignal;
  /** The folder that relative paths and commands start in; absolute and real. */
  readonly directory: string;
  /** Folders that belong to the work, the first being the project. */
  readonly workingDirectories: readonly string[];
  /** Who calls: shown in messages about changed files and in questions. */
  readonly agent: { readonly id: string; readonly name: string };
  readonly sessionId: string;
  /** From the main agent to the caller. */
  readonly agentPath: readonly { readonly id: string; readonly name: string }[];
  readonly callId: string;
  /** The same for the same call, however often it is sent on, and for no other call: for services that do a thing once per key. */
  readonly idempotencyKey?: string;
  /** Which file contents this agent has seen, and who changed what since. */
  readonly files: FileLedger;
  readonly host: ToolHost;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where output too long for a model is kept in full. */
  readonly outputDirectory: string;
  /** Informs watchers what is going on; never waits. */
  readonly progress: (text: string) => void;
  /** Takes what reads the output of a command so far, for those that show it while it runs. */
  readonly watchOutput?: (read: () => string) => void;
  /** What let this call through; absent where nothing decided about it. */
  readonly allowedBy?: AllowedBy;
  /** The command as it was judged; it runs in place of the one in the input. */
  readonly judged?: JudgedCommand;
  /** What the paths of this call led to when it was allowed; a file that is reached otherwise was not allowed. */
  readonly approvedPaths?: readonly string[];
  /** Whether what a search of this tool finds in a file may be shown, by real path; absent means everything may. */
  readonly mayRead?: (path: string, tool: string) => boolean;
  /** What rules allow to read, for a process that runs without approval by a person or a rule. */
  readonly wallRules?: WallRules;
  /** It was decided that such processes are isolated; where they cannot be, they do not run. */
  readonly countsOnWall?: boolean;
  /** Around each change of a file, by real path: other processes that change the same one wait for it. */
  readonly writeInTurn?: WriteInTurn;
  /** Notes a half-written file that would be left by a crash; gives back how to forget it. */
  readonly noteTemporary?: NoteTemporary;
}

/** What a tool gives back: the text or blocks for the model, and data for programs and transcripts. */
export interface ToolOutcome {
  readonly content: string | readonly (TextBlock | ImageBlock | DocumentBlock | ToolReferenceBlock)[];
  readonly isError?: boolean | undefined;
  /** Structured result, kept in the transcript as `toolUseResult`. */
  readonly data?: unknown;
}

/** What a server declares about its tool; a hint, never a permission. */
export interface McpHints {
  readonly readOnly?: boolean | undefined;
  readonly destructive?: boolean | undefined;
  readonly idempotent?: boolean | undefined;
}

/** Which tool of which MCP server this is: the pair as permission rules spell it, and the name as configured. */
export interface McpToolFacts extends McpIdentity {
  readonly serverName: string;
  /** Where the server is configured. */
  readonly source: string;
  readonly hints: McpHints;
}

/** One tool. `effect` and `origin` are what modes and background rules ask about, never its name. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly effect: ToolEffect;
  readonly origin: "builtin" | "mcp" | "program";
  /** Present for tools of MCP servers: rules are compared with this pair, never with the name. */
  readonly mcp?: McpToolFacts | undefined;
  /** Its results name tools that the model has from then on. */
  readonly findsTools?: boolean | undefined;
  /** It is shown in full from the start, however many tools there are; absent for all but tools of MCP servers. */
  readonly isAlwaysLoaded?: boolean | undefined;
  /** For tools that reach several servers: what rules about the server of this call are compared with. */
  readonly mcpOf?: ((input: Input) => McpIdentity | undefined) | undefined;
  /** Checks the input; its JSON Schema is what the model sees. Absent for tools that bring a JSON Schema of their own. */
  readonly input?: InputCheck<Input> | undefined;
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** Whether this call may run beside others; absent means: when the effect is `read`. */
  readonly isConcurrencySafe?: ((input: Input) => boolean) | undefined;
  /** What a second run of a call does, for recovery; absent means: `pure` when it reads, else `unsafe`. */
  readonly repeats?: Repeats | undefined;
  /** How many calls of one answer run at the same time where they may run beside each other; absent means ten. */
  readonly concurrency?: number | undefined;
  /** Whether what was asked for still continues, by the outcome's data: the same answer again is then no sign of a loop. */
  readonly isPending?: ((data: unknown) => boolean) | undefined;
  /** The paths a call touches, for permission rules; absent for tools that touch none. `home` is what `~` means. */
  readonly pathsOf?: ((input: Input, directory: string, home?: string) => readonly string[]) | undefined;
  /** Shown to people who are asked about this call, where its input does not say what it would do. Starts nothing. */
  readonly preview?: ((input: Input) => Promise<CallPreview | undefined>) | undefined;
  call(input: Input, context: ToolContext): Promise<ToolOutcome>;
}

/** A schema of zod, or of any library that follows Standard Schema, whose values are of a type. */
type InputSchema<Input> =
  | InputType<Input>
  | { readonly _output: Input }
  | { readonly "~standard": { readonly types?: { readonly output: Input } | undefined } };

/** A tool as a program writes it. */
interface ToolDefinition<Input> extends Omit<Tool<Input>, "origin" | "effect" | "input" | "call"> {
  readonly origin?: "program" | undefined;
  /** What a call does; absent means `execute`, which needs a permission. */
  readonly effect?: ToolEffect | undefined;
  readonly input?: InputSchema<Input> | undefined;
  /** Returns a text, or an outcome. */
  call(input: Input, context: ToolContext): ToolOutcome | string | Promise<ToolOutcome | string>;
}

const toolShape = checks.shape(
  {
    name: checks.filled,
    description: checks.text,
    input: checks.either("must be a schema: zod, Standard Schema or JSON Schema", checks.thing, checks.call),
    effect: checks.oneOf(toolEffects),
    call: checks.call,
  },
  ["name", "description", "call"],
);

/** Gives a tool of a program the type of its input. It is brought into one shape by the runtime that gets it. */
export function defineTool<Input>(tool: ToolDefinition<Input>): Tool {
  checkArgument("The tool of defineTool()", toolShape, tool);
  // The runtime checks the input by the schema before `call` sees it, and makes an outcome of a text.
  return { effect: "execute", ...tool, origin: "program" } as Tool;
}

export interface SkillRequest {
  readonly name: string;
  readonly arguments: string;
}

/** Where the Skill tool finds skills, bound to the agent that calls it. */
export interface SkillToolSource {
  /** One line for each skill that a model may call; the same as long as the session lasts. */
  readonly list: string;
  call(request: SkillRequest, context: ToolContext): Promise<ToolOutcome>;
}

/** A question with choices, as the AskUserQuestion tool puts it. */
export interface HostQuestion {
  readonly question: string;
  readonly header: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
  readonly multiSelect: boolean;
}

export interface TodoItem {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly activeForm: string;
}

/** What tools may ask of the program around them. A part that is absent does not exist for this run. */
export interface ToolHost {
  /** Puts questions to a person; absent in unattended runs. */
  readonly ask?:
    | ((
        questions: readonly HostQuestion[],
        options: {
          readonly signal: AbortSignal;
          /** The agent that asks. */
          readonly agent?: { readonly id: string; readonly name: string } | undefined;
          /** The agents from the main one to it. */
          readonly agentPath?: readonly { readonly id: string; readonly name: string }[] | undefined;
          /** The call that asks. */
          readonly callId?: string | undefined;
        },
      ) => Promise<Readonly<Record<string, string>>>)
    | undefined;
  readonly todosChanged?: ((todos: readonly TodoItem[]) => void) | undefined;
  /** Whether a host name outside may be fetched although it is private or loopback. */
  readonly mayFetchPrivate?: ((host: string) => boolean) | undefined;
}

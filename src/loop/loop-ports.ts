import type { Message, ToolUseBlock, UserMessage } from "../conversation/message.ts";
import type { Model, ServerTool } from "../model/model.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tools/tool.ts";

export type Admission =
  | { readonly type: "allowed"; readonly input: unknown }
  /** `stops`: the person also wants the run to end after this turn. */
  | { readonly type: "denied"; readonly because: string; readonly stops?: boolean };

export interface CallRequest {
  readonly call: ToolUseBlock;
  readonly tool: Tool;
  /** Checked by the tool's own schema. */
  readonly input: unknown;
}

/** What the loop needs of the world around it; it knows no plans, tasks, journals or files. */
export interface LoopPorts {
  readonly model: Model;
  readonly tools: readonly Tool[];
  readonly serverTools?: readonly ServerTool[];
  /** Decides whether a call may run: hooks, rules, a person. Called in the order of the calls. */
  readonly admit: (request: CallRequest, options: { readonly signal: AbortSignal }) => Promise<Admission>;
  readonly toolContext: (
    callId: string,
    options: { readonly signal: AbortSignal; readonly progress: (text: string) => void },
  ) => ToolContext;
  /** Hears of each call that was run, and may add to what the model sees of it. */
  readonly afterCall?: (
    request: CallRequest,
    outcome: ToolOutcome,
    options: { readonly signal: AbortSignal; readonly durationMs: number },
  ) => Promise<ToolOutcome>;
  /** Hears the final text before the run ends; a message given back makes the agent go on with it. */
  readonly beforeEnd?: (
    text: string,
    options: { readonly signal: AbortSignal },
  ) => Promise<UserMessage | undefined>;
  /** Messages that arrived from outside since the last turn. */
  readonly takeMessages: () => readonly UserMessage[];
  /** Whether a tool has taken the final result, so that no further turn is needed. */
  readonly isFinished?: () => boolean;
  /** Whether somebody has said since the last question that the run must end after this turn. */
  readonly isStopped?: () => boolean;
  /** How many calls that may run together do so, for tools that do not say it themselves; 10 when absent. */
  readonly atOnce?: number;
  /** Milliseconds that only ever grow. */
  readonly now: () => number;
}

export interface LoopInput {
  readonly system: readonly string[];
  /** The conversation so far; ends with a user message, or is empty and `prompt` begins it. */
  readonly history: readonly Message[];
  readonly prompt?: UserMessage;
  readonly maxTurns: number;
  /** US dollars this run may cost; checked before each turn. */
  readonly maxCost?: number;
  /** At the turn limit, one last turn without tools to hand in what there is. */
  readonly lastTurn?: boolean;
  /** An agent that ends without a text is asked once for its result. */
  readonly askWhenSilent?: boolean;
  /** Text repeated at the end of each turn's user message. */
  readonly reminder?: string;
  readonly effort?: string | number;
  readonly maxTokens?: number;
}

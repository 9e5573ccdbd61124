import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AllowedBy, JudgedCommand } from "@retinue/gate/decide.ts";
import type { Message, ToolUseBlock, UserMessage } from "../conversation/message.ts";
import type { Receipt } from "../conversation/receipt.ts";
import type { AskedSummary, RequestRecord, RunEnding, UsedApproval } from "../conversation/run-event.ts";
import type { Model, ModelRequest, ServerTool, ToolSpecification } from "../models/model.ts";
import { ModelError } from "../models/model-error.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tools/tool.ts";
import type { ModelAnswer } from "./take-model-turn.ts";

export type Authorization =
  | {
      readonly type: "allowed";
      readonly input: unknown;
      readonly asked?: boolean;
      /** What let it through. */
      readonly allowedBy?: AllowedBy;
      /** The rule, mode, hook or answer that let it through, in words. */
      readonly reason?: string;
      /** What the paths of the call led to when it was decided; absent where that was not looked at. */
      readonly paths?: readonly string[];
      /** What runs in place of the command of the input. */
      readonly run?: JudgedCommand;
      readonly approval?: UsedApproval;
      /** Judges it once more, for where it had to wait after it was decided; gives why it may not run now. */
      readonly recheck?: () => Promise<string | undefined>;
    }
  /** `stops`: the person also wants the run to end after this turn. `asked`: a person or program was asked. */
  | {
      readonly type: "denied";
      readonly reason: string;
      readonly stops?: boolean;
      readonly asked?: boolean;
      readonly approval?: UsedApproval;
    };

export interface CallRequest {
  readonly call: ToolUseBlock;
  readonly tool: Tool;
  /** Checked by the tool's own schema. */
  readonly input: unknown;
}

export interface AuthorizeOptions {
  readonly signal: AbortSignal;
  /**
   * Resolves when the calls before it, of those that may run together, have been decided. Hooks need not wait for that;
   * rules and people do, so that what was granted for one call counts for the next.
   */
  readonly turn?: (() => Promise<void>) | undefined;
  /** Rules that name the call are followed; what none names is allowed, without hooks and people, as something else decides about it. */
  readonly onlyRules?: true | undefined;
}

/** What a hook that is notified of a compaction beforehand answers. */
type CompactionPermit =
  | { readonly type: "granted"; readonly instructions?: string }
  | { readonly type: "blocked"; readonly reason: string };

/** A compaction as it was: the summary, and how many of the newest messages stay behind it. */
export interface RecordedCompaction {
  readonly summary: UserMessage;
  readonly kept: number;
  readonly asked?: AskedSummary;
}

/** How a conversation that becomes too long is replaced by a summary. */
export interface CompactionPort {
  /** Tokens at which that happens by itself; absent: only when it is asked for. */
  readonly thresholdTokens?: number;
  readonly before?: (
    facts: { readonly trigger: "auto" | "manual"; readonly instructions: string | undefined },
    options: { readonly signal: AbortSignal },
  ) => Promise<CompactionPermit>;
  /** Receives the summary; a message given back is added behind the conversation. */
  readonly after?: (
    facts: { readonly trigger: "auto" | "manual"; readonly summary: string },
    options: { readonly signal: AbortSignal },
  ) => Promise<UserMessage | undefined>;
  /** A compaction that was asked for happens however short the conversation is. */
  readonly compactsShort?: boolean;
  /** What continues meanwhile and must not be forgotten, each as one text. */
  readonly restate?: () => readonly string[];
  /**
   * In a replay: the compaction that was recorded at this place. It is applied as it was, and where this is present,
   * nothing else compacts.
   */
  readonly recorded?: () => RecordedCompaction | undefined;
  /** In a replay: called with the request for a summary as it would be sent now. */
  readonly onSummaryRequest?: (request: ModelRequest, recorded: RecordedCompaction) => void;
}

/** What the loop needs of the world around it; it knows no plans, tasks, journals or files. */
export interface LoopPorts {
  readonly model: Model;
  readonly tools: readonly Tool[];
  readonly serverTools?: readonly ServerTool[];
  /** Whether a tool is still there, asked before each turn; absent means all are. */
  readonly isOffered?: (tool: Tool) => boolean;
  /** What the model sees of the tools that are there, given the conversation; absent means all of each. */
  readonly present?: (tools: readonly Tool[], messages: readonly Message[]) => readonly ToolSpecification[];
  /** Sees the calls of one answer together, before the first of them is decided about. */
  readonly beforeCalls?: (calls: readonly CallRequest[]) => void;
  /** Decides whether a call may run: hooks, rules, a person. Called in the order of the calls. */
  readonly authorize: (request: CallRequest, options: AuthorizeOptions) => Promise<Authorization>;
  readonly toolContext: (
    callId: string,
    options: Pick<ToolContext, "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
  ) => ToolContext;
  /**
   * Resolves when everything that was yielded so far is recorded for good; waited for before a call runs that does more
   * than look. Absent where nothing is recorded.
   */
  readonly commit?: () => Promise<void>;
  /** Takes down what an answer was asked with; absent where nothing is recorded. Never throws. */
  readonly recordRequest?: (request: ModelRequest) => RequestRecord;
  /** Receives each call that was run, and may add to what the model sees of it. */
  readonly afterCall?: (
    request: CallRequest,
    outcome: ToolOutcome,
    options: { readonly signal: AbortSignal; readonly durationMs: number },
  ) => Promise<ToolOutcome>;
  /** Receives the final text before the run ends; a message given back makes the agent continue with it. */
  readonly beforeEnd?: (
    text: string,
    options: { readonly signal: AbortSignal },
  ) => Promise<UserMessage | undefined>;
  /** Runs the checks of the agent; absent where no receipt is kept. */
  readonly verify?: VerifyPort;
  /** Sees an answer without calls; a message given back makes the model continue one that was cut, refused or empty. */
  readonly continueAnswer?: (
    answer: Pick<ModelAnswer, "id" | "stopReason" | "message" | "model">,
  ) => UserMessage | undefined;
  /** Messages that arrived from outside since the last turn. */
  readonly takeMessages: () => readonly UserMessage[];
  /** Whether a value is due, of which `beforeEnd` reminds: then an agent that ends without a text is not asked for one. */
  readonly handsInValue?: () => boolean;
  /** Whether a tool has taken the final result, so that no further turn is needed. */
  readonly isFinished?: () => boolean;
  /** Whether a person or hook has said since the last question that the run must end after this turn. */
  readonly isStopped?: () => boolean;
  /** Absent: the conversation is never compacted. */
  readonly compaction?: CompactionPort;
  /** What the run must respect besides its turns; absent limits nothing. */
  readonly limits?: LoopLimits;
  /** Present where a used-up quota is waited for. */
  readonly quota?: QuotaPort;
  /** How many calls that may run together do so, for tools that do not say it themselves; 10 when absent. */
  readonly concurrency?: number;
  /** Milliseconds that only ever grow. */
  readonly now: () => number;
}

/** How a run continues where the quota of its provider comes to an end. */
export interface QuotaPort {
  /** Set while only last turns are taken: whose quota it is, and when there is a new one, in milliseconds since 1970. */
  readonly closing: () => { readonly provider: string; readonly until: number } | undefined;
  /** Whether an agent that has done nothing yet begins although only last turns are taken. */
  readonly mayBegin: boolean;
  /** Until it is disposed, a request that finds no quota fails instead of waiting. */
  readonly lastTurn: () => Disposable;
  /** Resolves when there is a new quota. */
  readonly wait: (options: { readonly signal: AbortSignal }) => Promise<void>;
}

/** How the result of a run is checked by the runtime. */
export interface VerifyPort {
  /** Forgets the work before, and asks about the checks of the next. */
  readonly begin: (signal: AbortSignal) => Promise<void>;
  /** Runs the checks; a message given back makes the agent continue with what failed. */
  readonly check: NonNullable<LoopPorts["beforeEnd"]>;
  /** The receipt of a run that is over. Never rejects. */
  readonly receipt: (
    ending: Pick<RunEnding, "status" | "text">,
    options: { readonly signal: AbortSignal },
  ) => Promise<Receipt>;
}

interface TakenCalls {
  readonly granted: number;
  readonly limit?: LimitReached;
}

/** Limits that others share or that need a clock. */
export interface LoopLimits {
  /** How many of so many tool calls may still be made, and the limit where it is not all of them. */
  readonly takeCalls: (count: number) => TakenCalls | Promise<TakenCalls>;
  /** The limit that made the last answer shorter than it was asked for. */
  readonly shortened: () => LimitReached | undefined;
  /** Equal rounds of futile calls after which the run ends; a default when absent. */
  readonly maxRepeats?: number;
  /** A signal for one call that is also aborted, with the reason for the agent, when the call takes too long. */
  readonly limitCall?: (
    request: CallRequest,
    signal: AbortSignal,
  ) => { readonly signal: AbortSignal } & Disposable;
}

export interface LoopInput {
  readonly system: readonly string[];
  /** The conversation so far; ends with a user message, or is empty and `prompt` begins it. */
  readonly history: readonly Message[];
  readonly prompt?: UserMessage;
  readonly maxTurns: number;
  /** At the turn limit, one last turn without tools to hand in what there is. */
  readonly lastTurn?: boolean;
  /** An agent that ends without a text is asked once for its result. */
  readonly askWhenSilent?: boolean;
  /** Text repeated at the end of each turn's user message. */
  readonly reminder?: string;
  readonly effort?: string | number;
  readonly maxTokens?: number;
}

/** The limits that end a run with what it has. */
const limitReasons = [
  "max_turns",
  "max_budget",
  "max_total_tokens",
  "max_tool_calls",
  "max_time",
  "max_tokens",
  "loop",
] as const;
export type LimitReason = (typeof limitReasons)[number];

/** A limit that leaves nothing more, and what of it was left. */
export interface LimitReached {
  readonly reason: LimitReason;
  /** One sentence with the numbers. */
  readonly error: string;
}

export function limitError({ reason, error }: LimitReached): RetinueError {
  return new RetinueError(reason, error);
}

/** Whether something was not done because a limit leaves nothing for it. */
export function isLimitError(error: unknown): boolean {
  return isRetinueError(error) && isLimit(error.code);
}

/** How a run ends that was stopped, or broken off by what was thrown: a limit hands in what there is. */
export function endingOfCause(
  cause: unknown,
  isStopped: boolean,
): Pick<RunEnding, "status" | "reason" | "error" | "advice" | "provider"> {
  const unnamed = isStopped ? "aborted" : "error";
  const reason = isRetinueError(cause) ? cause.code : unnamed;
  const error = cause instanceof Error ? cause.message : String(cause);
  const advice = isRetinueError(cause) && cause.advice !== undefined ? { advice: cause.advice } : {};
  if (isLimit(reason)) return { status: "partial", reason, error, ...advice };
  // A silent run is stopped, also where it did not respect its signal and had to be given up.
  const isSilent = reason === "stalled" && !(cause instanceof ModelError);
  if (isStopped || isSilent) return { status: "stopped", reason };
  const provider =
    cause instanceof ModelError && cause.answer !== undefined ? { provider: cause.answer } : {};
  return { status: "failed", reason, error, ...advice, ...provider };
}

function isLimit(reason: string): boolean {
  return limitReasons.some((known) => known === reason);
}

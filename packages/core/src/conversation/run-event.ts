import type { QuotedBands } from "@retinue/gate/batch-quote.ts";
import type { CallIntent, InterruptedAgent } from "./interrupted-agent.ts";
import type { ModelEvent, ToolResultBlock, ToolUseBlock, UserMessage } from "./message.ts";
import type { Receipt } from "./receipt.ts";
import { addUsage, noUsage, type Usage } from "./usage.ts";

/** Sums over a run. */
export interface RunTotals {
  readonly usage: Usage;
  readonly turns: number;
  readonly toolUses: number;
  readonly durationMs: number;
  readonly modelMs: number;
  /** US dollars; absent when the price of a model is not known. */
  readonly costUsd?: number;
}

/** What a run took that asked no model. */
export const noTotals: RunTotals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 };

export function addTotals(a: RunTotals, b: RunTotals): RunTotals {
  const known = a.costUsd !== undefined && b.costUsd !== undefined ? { costUsd: a.costUsd + b.costUsd } : {};
  return {
    usage: addUsage(a.usage, b.usage),
    turns: a.turns + b.turns,
    toolUses: a.toolUses + b.toolUses,
    durationMs: a.durationMs + b.durationMs,
    modelMs: a.modelMs + b.modelMs,
    ...known,
  };
}

/** What is left of `a` without `b`, which is a part of it. */
export function subtractTotals(a: RunTotals, b: RunTotals): RunTotals {
  const known = a.costUsd !== undefined && b.costUsd !== undefined ? { costUsd: a.costUsd - b.costUsd } : {};
  return {
    usage: {
      inputTokens: a.usage.inputTokens - b.usage.inputTokens,
      outputTokens: a.usage.outputTokens - b.usage.outputTokens,
      cacheReadTokens: a.usage.cacheReadTokens - b.usage.cacheReadTokens,
      cacheWriteTokens: a.usage.cacheWriteTokens - b.usage.cacheWriteTokens,
    },
    turns: a.turns - b.turns,
    toolUses: a.toolUses - b.toolUses,
    durationMs: a.durationMs - b.durationMs,
    modelMs: a.modelMs - b.modelMs,
    ...known,
  };
}

/** The answer of the approval inbox that decided about a call. */
export interface UsedApproval {
  readonly id: string;
  /** Who gave it. */
  readonly by: string;
}

/** What let a call run: the kind of its grant (a rule, the mode, a hook, a person …) and the sentence that names it. */
export interface AllowedCall {
  readonly by: string;
  readonly reason: string;
}

/** A call that was not allowed to run. */
export interface PermissionDenial {
  readonly call: ToolUseBlock;
  readonly reason: string;
}

/** A model that could not answer, by id, the model that answered in its place, and the code of the error. */
export interface ModelFallback {
  readonly from: string;
  readonly to: string;
  readonly code: string;
}

/** How a run ended. Every ending has the same shape. */
export interface RunEnding {
  readonly status: "completed" | "partial" | "failed" | "stopped";
  /** The exact reason: a stop reason of the model, a limit, a error code, or `aborted`. */
  readonly reason: string;
  /** The final text, or what there is of it. */
  readonly text: string;
  readonly totals: RunTotals;
  /** The sums with those of all child agents that have ended; absent where there were none. */
  readonly tree?: RunTotals;
  readonly denials: readonly PermissionDenial[];
  /** Models that could not answer, in order; absent where there were none. */
  readonly fallbacks?: readonly ModelFallback[];
  /** What went wrong, as one sentence, when the status is failed. */
  readonly error?: string;
  /** What to do about it, where that is known. */
  readonly advice?: string;
  /** What the provider answered, where the provider failed. */
  readonly provider?: { readonly status: number; readonly type: string; readonly message: string };
  /** How many child agents were found cut off when the session was taken up again; absent where there were none. */
  readonly interruptedAgents?: number;
  /** The checked value, where the run was asked for typed output. */
  readonly output?: unknown;
  /** What the runtime vouches for: checks, the tree they ran on, and facts of the run. */
  readonly receipt?: Receipt;
  /** What it was expected to take before it started, where that was quoted. */
  readonly quote?: QuotedBands;
}

/** A request for a summary, and what of its question does not follow from the conversation. */
export interface AskedSummary {
  readonly request: RequestRecord;
  readonly question: {
    readonly words: number;
    readonly instructions?: string;
    /** What was left out, in short, where the whole would not fit. */
    readonly earlier?: string;
    /** How many messages after the first were left out. */
    readonly skipped?: number;
  };
}

/** What a model says, under another type. */
type Untyped<Type extends ModelEvent["type"]> = Omit<Extract<ModelEvent, { readonly type: Type }>, "type">;

/** The steps of starting a child, in their order. */
export const spawnSteps = [
  "limits",
  "definition",
  "id",
  "hooks",
  "model",
  "tools",
  "permissions",
  "memory",
  "prompt",
  "configuration",
  "scoped-hooks",
  "launch",
] as const;
export type SpawnStep = (typeof spawnSteps)[number];

/**
 * Everything that happens in a run. The loop waits until the taker asks for the next event, so a taker that writes a
 * message down before asking has it on disk before the next step begins.
 */
export type RunEvent =
  /** Steps of starting a child, in order, each with what was decided in it: those before its start hooks, then the others. */
  | {
      readonly type: "spawn-advanced";
      readonly steps: readonly { readonly step: SpawnStep; readonly value: unknown }[];
    }
  /** Another vendor's program does the work, in a session of its own by which it can be continued. */
  | { readonly type: "runner-opened"; readonly runner: string; readonly session: string }
  | { readonly type: "turn-started"; readonly turn: number }
  /** What the model writes while it answers, for viewers. */
  | { readonly type: "model-streamed"; readonly event: ModelEvent }
  /** A request failed and is made again after a while. */
  | ({ readonly type: "model-retried" } & Untyped<"attempt-failed">)
  /** A model could not answer, and another one is asked instead, for the rest of the run. */
  | ({ readonly type: "model-fell-back" } & ModelFallback)
  /** The provider's quota is used up, and the agent waits for the next one. */
  | ({ readonly type: "quota-waiting" } & Untyped<"quota-waiting">)
  | ({ readonly type: "quota-renewed" } & Untyped<"quota-renewed">)
  /** An answer broke off; nothing of it is used, but what it took until then counts. */
  | { readonly type: "answer-lost"; readonly model: string; readonly usage: Usage; readonly costUsd?: number }
  /**
   * `durationMs` counts from the request that was answered, its retries included; `intents` show what its calls would do
   * when repeated, in case they are cut off; `request` shows what was asked, where that is recorded.
   */
  | ({
      readonly type: "assistant-answered";
      readonly costUsd?: number;
      readonly intents?: readonly CallIntent[];
      readonly durationMs?: number;
      readonly request?: RequestRecord;
    } & Untyped<"message-ended">)
  | { readonly type: "call-started"; readonly call: ToolUseBlock; readonly effect: string }
  /** What is going on in a call; of a command, the end of what it has written. */
  | { readonly type: "call-progressed"; readonly callId: string; readonly text: string }
  | {
      readonly type: "call-finished";
      readonly call: ToolUseBlock;
      readonly isError: boolean;
      /** What the model gets to see of it. */
      readonly content?: ToolResultBlock["content"];
      readonly denied?: string;
      readonly data?: unknown;
      readonly durationMs: number;
      /** How long it was decided whether the call may run. */
      readonly decidedMs?: number;
      /** A person or program was asked about it. */
      readonly asked?: boolean;
      readonly approval?: UsedApproval;
      /** Why it was allowed to run; absent where it was not. */
      readonly allowed?: AllowedCall;
    }
  | {
      readonly type: "user-added";
      readonly message: UserMessage;
      /** By call id, what programs and transcripts keep of each result. */
      readonly results?: Readonly<Record<string, unknown>>;
      readonly origin: "prompt" | "tool-results" | "system" | "message";
    }
  /** The conversation is being replaced by a summary, which may take a model call. */
  | {
      readonly type: "compaction-started";
      readonly trigger: "auto" | "manual";
      readonly preTokens: number;
    }
  /** The summary is being written; a sign of life. */
  | { readonly type: "compaction-progressed" }
  /** The conversation continues from a summary: from here on the model sees it and the newest `kept` messages. */
  | {
      readonly type: "context-compacted";
      readonly trigger: "auto" | "manual";
      readonly preTokens: number;
      readonly postTokens: number;
      /** How the summary was made: by the model, or by rule because the model failed. */
      readonly by: "model" | "rule";
      readonly summary: UserMessage;
      /** How many of the newest messages are word for word behind the summary; the first of them is an answer. */
      readonly kept: number;
      /** How many of those are answers, by which a transcript finds them. */
      readonly keptAnswers: number;
      /** The model that was asked for the summary. */
      readonly model: string;
      readonly durationMs: number;
      readonly usage: Usage;
      readonly costUsd?: number;
      /** What the model was asked for the summary, where requests are recorded. */
      readonly asked?: AskedSummary;
    }
  /** The run gave no sign of life for a while; `stops` when that ends it. */
  | { readonly type: "run-stalled"; readonly silentMs: number; readonly stops: boolean }
  /** Child agents of this session that were found cut off, before the first prompt after that. */
  | { readonly type: "agents-interrupted"; readonly agents: readonly InterruptedAgent[] }
  /** The same call came again and again; the agent was notified. */
  | { readonly type: "loop-noticed"; readonly call: ToolUseBlock; readonly times: number }
  /** A teammate has handed in its work and waits for mail; the ending is that of the work, not of the agent. */
  | { readonly type: "run-idled"; readonly ending: RunEnding }
  | { readonly type: "run-ended"; readonly ending: RunEnding };

/** Takes events of a run. It declares which, so that the others are not handed to it. */
export interface EventSink {
  /** Absent: all of them. */
  readonly types?: ReadonlySet<RunEvent["type"]>;
  readonly take: (event: RunEvent) => void;
}

/** Gives an event to the sinks that take its type, in their order. */
export function handTo<State>(
  sinks: readonly (Pick<EventSink, "types"> & {
    readonly take: (event: RunEvent, state: State) => void;
  })[],
  event: RunEvent,
  state: State,
): void {
  for (const { types, take } of sinks) if (types === undefined || types.has(event.type)) take(event, state);
}

/** What a transcript keeps of a request, so that a replay can prove that it makes the same one. */
export interface RequestRecord {
  /** Over everything that was sent, to the byte. */
  readonly digest: string;
  /** The names under which the session keeps the system prompt and the tools. */
  readonly system: string;
  readonly tools: string;
  /** Everything else but the messages; absent where there was nothing else. */
  readonly options?: Readonly<Record<string, unknown>>;
}

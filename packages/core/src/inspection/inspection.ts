import type { QuoteCoverage, QuotedBands } from "@retinue/gate/batch-quote.ts";
import type { Usage } from "../conversation/usage.ts";

/** All that a session's files show about it, as plain data that survives JSON. Times are milliseconds since 1970. */
export interface Inspection {
  readonly version: 1;
  readonly session: InspectedSession;
  /** When the files were read. */
  readonly takenAt: number;
  /** Set when only this agent and its children are shown. */
  readonly only?: string;
  /** The main agent first, then the children in the order of their start; each names its parent. */
  readonly agents: readonly InspectedAgent[];
  /** Of all agents shown. */
  readonly totals: InspectedTotals;
  readonly byModel: readonly ModelShare[];
  readonly byTool: readonly ToolShare[];
  readonly refusals: readonly Refusal[];
  /** Of the agents shown that were quoted and did their work, how many took what was quoted; absent where none was. */
  readonly quotes?: QuoteCoverage;
  /** What people did to the session from other programs; absent when there were none. */
  readonly acts?: readonly InspectedAct[];
  /** Children whose files were not read yet; absent where all were. */
  readonly unread?: number;
  /** What is missing in the files or contradicts them. */
  readonly notes: readonly string[];
  /** The team that the session led. */
  readonly team?: InspectedTeam;
}

export interface InspectedTeam {
  readonly name: string;
  readonly members: readonly {
    readonly name: string;
    readonly state: string;
    readonly agentId?: string;
    readonly agentType?: string;
    readonly unread: number;
  }[];
  readonly tasks: readonly {
    readonly id: string;
    readonly subject: string;
    readonly status: string;
    readonly owner?: string;
    /** Those that are still open. */
    readonly blockedBy: readonly string[];
  }[];
  /** Mail and changes of the board, oldest first. */
  readonly events: readonly {
    readonly kind: "mail" | "board";
    readonly at: number;
    readonly text: string;
  }[];
}

/** A team as lines: members and tasks, then what happened. */
export function teamLines({ members, tasks, events }: InspectedTeam): {
  readonly standing: readonly string[];
  readonly events: readonly string[];
} {
  return {
    standing: [
      ...members.map(({ name, state, agentType, agentId, unread }) =>
        [`${name}: ${state}`, agentType, agentId, unread === 0 ? undefined : `${unread} unread`]
          .filter((text) => text !== undefined)
          .join(", "),
      ),
      ...tasks.map(({ id, subject, status, owner, blockedBy }) => {
        const blocked = blockedBy.length === 0 ? "" : `, blocked by ${blockedBy.join(", ")}`;
        return `#${id} ${subject}: ${status}${owner === undefined ? "" : ` (${owner})`}${blocked}`;
      }),
    ],
    events: events.map(({ at, text }) => `${new Date(at).toISOString().slice(11, 19)} ${text}`),
  };
}

export interface InspectedAct {
  readonly at?: number;
  readonly action: string;
  readonly agentId: string;
  readonly text?: string;
  readonly state: string;
  readonly reason?: string;
  /** The person, and through which program. */
  readonly by: string;
}

export interface InspectedSession {
  readonly id: string;
  readonly title: string;
  readonly file: string;
  readonly cwd?: string;
  readonly gitBranch?: string;
  /** Of the program that wrote the newest line. */
  readonly version?: string;
  /** A process that still runs holds the session or one of its agents. */
  readonly isLive: boolean;
}

/** `answered`: no ending was written, as by other programs, but the last answer is complete. */
export type AgentState =
  | "running"
  | "completed"
  | "partial"
  | "failed"
  | "stopped"
  | "answered"
  | "interrupted"
  | "empty";

export interface InspectedAgent {
  /** `main`, or the id of a child. */
  readonly id: string;
  readonly parentId?: string;
  /** How many agents are above it. */
  readonly depth: number;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  readonly models: readonly string[];
  readonly state: AgentState;
  readonly reason?: string;
  readonly error?: string;
  readonly receipt?: InspectedReceipt;
  /** What was quoted for its last run before that started, and what it took; absent where nothing was. */
  readonly quote?: InspectedQuote;
  readonly isLive: boolean;
  readonly startedAt?: number;
  readonly lastSignAt?: number;
  /** The beginning of what it was first asked, and of what it last said. */
  readonly prompt?: string;
  readonly result?: string;
  /** When it worked: from each prompt to the end of its answer. */
  readonly runs: readonly Span[];
  readonly totals: InspectedTotals;
  /** The same with all its children. */
  readonly tree: InspectedTotals;
  /** Sums of what its endings say; absent where none was written. */
  readonly recorded?: RecordedTotals;
  /** What was under way at the last line. */
  readonly inFlight: readonly InFlight[];
  readonly steps: readonly Step[];
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface InspectedTotals {
  readonly turns: number;
  readonly toolUses: number;
  readonly usage: Usage;
  /** US dollars; absent when the price of some answer is not known. */
  readonly costUsd?: number;
  /** US dollars of those answers whose price is known. */
  readonly pricedCost: number;
  /** Answers whose price is not known. */
  readonly unpriced: number;
  /** Answers whose line has no cost, so that the catalog's price was taken. */
  readonly listPriced: number;
  /** From each prompt to the end of its answer. In a sum over agents, time that passed for several concurrently counts for each. */
  readonly durationMs: number;
  /** Of that, waiting for the model, running tools, and neither: hooks, questions, waiting for a place. */
  readonly modelMs: number;
  readonly toolMs: number;
  readonly otherMs: number;
  readonly failedCalls: number;
  readonly refusedCalls: number;
  readonly questions: number;
  readonly retries: number;
  readonly compactions: number;
}

export interface RecordedTotals {
  readonly turns: number;
  readonly toolUses: number;
  readonly usage: Usage;
  readonly costUsd?: number;
  readonly durationMs: number;
  readonly modelMs: number;
}

export interface ModelShare {
  readonly model: string;
  readonly turns: number;
  readonly usage: Usage;
  readonly costUsd?: number;
  readonly modelMs: number;
}

export interface ToolShare {
  readonly tool: string;
  readonly calls: number;
  readonly failed: number;
  readonly refused: number;
  /** Calls at the same time count each. */
  readonly durationMs: number;
  /** US dollars of the agents it started, where it starts agents and all of them have a price. */
  readonly agentsCost?: number;
}

export interface Refusal {
  readonly agentId: string;
  readonly callId: string;
  readonly tool: string;
  readonly about: string;
  readonly reason: string;
  readonly at?: number;
}

export type InFlight =
  | {
      readonly type: "model";
      readonly since?: number;
      /** Set where it waits for a new quota of a provider. */
      readonly quota?: { readonly provider: string; readonly until: number };
    }
  | {
      readonly type: "call";
      readonly callId: string;
      readonly tool: string;
      readonly about: string;
      readonly since?: number;
      /** Since when the process that runs the session asks its own person about it, such as in a terminal. */
      readonly askedSince?: number;
    };

export type CallOutcome = "ok" | "failed" | "refused" | "interrupted" | "running" | "unanswered";

/** `at` is when a step began, as far as the lines show. Texts are cut. */
export type Step =
  | {
      readonly type: "prompt";
      readonly at?: number;
      readonly text: string;
      /** Said by the runtime, not by a person or a parent. */
      readonly isMeta: boolean;
    }
  | TurnStep
  | CallStep
  | {
      readonly type: "retry";
      readonly at?: number;
      readonly code: string;
      readonly text: string;
      readonly waitMs?: number;
    }
  | LostStep
  /** Shown in the place of an answer. */
  | { readonly type: "error"; readonly at?: number; readonly text: string }
  | CompactionStep
  | {
      readonly type: "ending";
      readonly at?: number;
      readonly status: string;
      readonly reason: string;
      readonly error?: string;
      readonly receipt?: InspectedReceipt;
      readonly quote?: InspectedQuote;
    };

/** A quote beside what the run took. */
export interface InspectedQuote extends QuotedBands {
  readonly real: { readonly costUsd?: number; readonly tokens: number; readonly durationMs: number };
  /** In money where that was quoted and is known, else in tokens. */
  readonly isInside: boolean;
}

/** What the runtime vouched for at the end of a run. */
export interface InspectedReceipt {
  readonly status: string;
  readonly tree?: string;
  /** How often a failed check went back to the agent. */
  readonly retries: number;
  readonly changedFiles: readonly string[];
  readonly checks: readonly {
    readonly run: string;
    readonly passed: boolean;
    readonly exitCode?: number;
    readonly reason?: string;
    readonly durationMs?: number;
    /** The end of what it wrote. */
    readonly output: string;
    readonly flaky: boolean;
  }[];
  readonly notes: readonly string[];
}

export interface CompactionStep {
  readonly type: "compaction";
  readonly at?: number;
  readonly trigger: string;
  readonly by?: string;
  readonly model?: string;
  readonly preTokens?: number;
  readonly postTokens?: number;
  readonly durationMs?: number;
  /** Of the summary; nothing where the file does not say. */
  readonly usage: Usage;
  readonly costUsd?: number;
  readonly costFrom: "line" | "catalog" | "unknown";
}

/** An answer that broke off, and what it took until then. */
export interface LostStep {
  readonly type: "lost";
  readonly at?: number;
  readonly model: string;
  readonly usage: Usage;
  readonly costUsd?: number;
  readonly costFrom: "line" | "catalog" | "unknown";
}

export interface TurnStep {
  readonly type: "turn";
  readonly at?: number;
  /** Recorded, or from the line before to this one. */
  readonly durationMs?: number;
  readonly model: string;
  readonly usage: Usage;
  readonly costUsd?: number;
  readonly costFrom: "line" | "catalog" | "unknown";
  readonly stopReason?: string;
  readonly text: string;
}

export interface CallStep {
  readonly type: "call";
  readonly at?: number;
  /** Recorded, or from the call's line to that of its result, which is at least as long. */
  readonly durationMs?: number;
  readonly callId: string;
  readonly tool: string;
  /** The argument that shows most. */
  readonly about: string;
  readonly outcome: CallOutcome;
  /** Why it failed or was refused. */
  readonly reason?: string;
  /** How long it was decided about; with a question, how long that took. */
  readonly decidedMs?: number;
  readonly asked?: boolean;
  /** Why it was allowed, where the journal has it. */
  readonly allowed?: string;
  /** The child it started. */
  readonly agentId?: string;
}

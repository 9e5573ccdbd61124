import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import type { CallPreview } from "@retinue/gate/approver.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";
import type { RuleUpdate } from "./op.ts";

export type QuestionId = string;

interface QuestionBase {
  readonly id: QuestionId;
  /** From the main agent to the agent that asks; never empty. */
  readonly path: readonly { readonly id: string; readonly name: string }[];
  /** The call that asks, where one does. */
  readonly callId?: string | undefined;
}

/** May this call run? */
export interface PermissionQuestion extends QuestionBase {
  readonly kind: "permission";
  readonly callId: string;
  readonly tool: string;
  /** Exactly what would run. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Why rules and mode do not decide it. */
  readonly reason: string;
  /** Rules that together would have allowed it; none where no rule can. */
  readonly rules: readonly string[];
  /** Paths of the call outside the working directories. */
  readonly outsidePaths?: readonly string[] | undefined;
  /** Whose tool it is, where it is one of an MCP server. */
  readonly server?: { readonly name: string; readonly source: string } | undefined;
  /** Of a batch of agents that is asked about before it starts: what it may take, and what its agents may do. */
  readonly quote?: BatchQuote | undefined;
  /** What the call would do, where its input does not say that by itself. */
  readonly preview?: CallPreview | undefined;
  /** Asked for an agent before it goes to the background, where it cannot ask: `rules` are the tools it may want. */
  readonly isBeforeBackground?: true | undefined;
}

export interface FormField {
  readonly question: string;
  readonly header: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
  readonly multiSelect: boolean;
}

/** AskUserQuestion. */
export interface FormQuestion extends QuestionBase {
  readonly kind: "form";
  readonly fields: readonly FormField[];
}

/** A finished plan waits to be carried out. */
export interface PlanQuestion extends QuestionBase {
  readonly kind: "plan";
  readonly callId: string;
  readonly plan: string | undefined;
}

/** What an MCP server wants to know of the person: a form, or an address to open. */
export interface ElicitationQuestion extends QuestionBase {
  readonly kind: "elicitation";
  readonly server: string;
  readonly message: string;
  readonly url?: string | undefined;
  readonly elicitationId?: string | undefined;
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
}

export type Question = PermissionQuestion | FormQuestion | PlanQuestion | ElicitationQuestion;

/** How long an allowing answer holds; `save` also writes its rules into the project's local settings. */
export type AnswerScope = "call" | "agent" | "session" | "save";

/** What can be answered; which of them a question takes depends on its kind. */
export type Answer =
  /** Of a permission. */
  | {
      readonly type: "allow";
      /** Absent: for this call. */
      readonly scope?: AnswerScope | undefined;
      /** For a wider scope; absent means those that the question names. */
      readonly rules?: readonly string[] | undefined;
      /** What runs instead of the input of the question. */
      readonly input?: Readonly<Record<string, unknown>> | undefined;
      readonly updates?: readonly RuleUpdate[] | undefined;
    }
  /** Of any question. `stop`: the run is to end after this turn. */
  | { readonly type: "deny"; readonly message?: string | undefined; readonly stop?: boolean | undefined }
  /** Of a form, by the text of each question. */
  | { readonly type: "fields"; readonly answers: Readonly<Record<string, string>> }
  /** Of a plan, which may have been changed; without a mode it is carried out in the one before planning. */
  | {
      readonly type: "approve";
      readonly plan?: string | undefined;
      readonly mode?: PermissionMode | undefined;
      readonly updates?: readonly RuleUpdate[] | undefined;
    }
  /** Of an elicitation. */
  | {
      readonly type: "elicited";
      readonly action: "accept" | "decline" | "cancel";
      readonly content?: Readonly<Record<string, string | number | boolean | readonly string[]>> | undefined;
    };

import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { BatchQuote } from "./batch-quote.ts";

/** One agent on the way from the main agent to the agent that asks. */
export interface AskingAgent {
  readonly id: string;
  readonly name: string;
}

/** A call that rules leave open, as a person is to see it. */
export interface ApprovalRequest {
  readonly sessionId: string;
  /** The agent whose call it is: the last of `agentPath`. */
  readonly agentId: string;
  /** From the main agent to the one whose call it is; never empty. */
  readonly agentPath: readonly AskingAgent[];
  /** @deprecated The same as `agentPath`. */
  readonly path?: readonly AskingAgent[] | undefined;
  readonly callId: string;
  readonly tool: string;
  /** Exactly what would run. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Why rules and mode do not decide it. */
  readonly reason: string;
  /** Rules that together would have allowed this call; none where no rule can. */
  readonly suggestedRules: readonly string[];
  /** A digest of what the call touches and of the scripts it runs; an answer that is kept for later holds for these alone. */
  readonly boundTo?: string | undefined;
  /** Of a batch of agents that is asked about before it starts: what it may take, and what its agents may do. */
  readonly quote?: BatchQuote | undefined;
  /** What the call would do, where its input does not say that by itself. */
  readonly preview?: CallPreview | undefined;
}

/** What a call would do, for people who are asked about it. */
export interface CallPreview {
  /** At most 74 columns wide; what decides comes first. */
  readonly rows: readonly string[];
  /** All that would run, such as a script that the input only names. */
  readonly text: string;
}

/** Undefined for what is no preview. */
export function readPreview(value: unknown): CallPreview | undefined {
  if (!isRecord(value) || !Array.isArray(value["rows"]) || typeof value["text"] !== "string")
    return undefined;
  const rows: readonly unknown[] = value["rows"];
  return rows.every((row) => typeof row === "string") ? { rows, text: value["text"] } : undefined;
}

/**
 * What a person says. `agent` and `session` hold for calls that the rules cover, or for this very call again where there
 * are none; `save` also writes them into the project's local settings. Without `rules`, the suggested ones are meant.
 */
export type ApprovalAnswer =
  | { readonly type: "allow"; readonly for: "call" }
  | {
      readonly type: "allow";
      readonly for: "agent" | "session" | "save";
      readonly rules?: readonly string[] | undefined;
    }
  | { readonly type: "deny"; readonly message?: string | undefined }
  /** The call is refused and the run ends after this turn. */
  | { readonly type: "deny-and-stop"; readonly message?: string | undefined };

/** A person or program that can be asked. Rejects only when the signal is aborted. */
export interface Approver {
  approve(request: ApprovalRequest, options: { readonly signal: AbortSignal }): Promise<ApprovalAnswer>;
  /**
   * True: can show several questions at the same time, such as the same call of several agents. Otherwise they come one after
   * the other. A question that an answer to another one has settled is withdrawn by its signal.
   */
  readonly isConcurrent?: boolean | undefined;
  /** Called when an answer could not be followed to the letter, such as a rule that was not saved. */
  readonly notice?: ((message: string) => void) | undefined;
}

/** The same approver, which also finds the path of agents under its earlier name. */
export function withEarlierNames(approver: Approver): Approver {
  return {
    approve: (request, options) => approver.approve({ ...request, path: request.agentPath }, options),
    isConcurrent: approver.isConcurrent,
    notice: approver.notice === undefined ? undefined : (message) => approver.notice?.(message),
  };
}

/** `main → reviewer → Explore`. */
export function describeAskingPath(path: readonly AskingAgent[]): string {
  return path.map(({ name }) => name).join(" → ");
}

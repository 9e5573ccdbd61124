import type { ConversationEntry } from "../../inspection/conversation-fold.ts";
import type { GrantScope } from "../../permissions/grants/approval-record.ts";
import type { Approval } from "../../runtime/approvals/find-approvals.ts";
import type { LivePiece } from "../../runtime/live/live-text.ts";
import type { SessionOverview } from "./session-overview.ts";

/** What server and page send each other, besides overviews of sessions. */

export interface SessionRow {
  /** The name of the project's folder of transcripts. */
  readonly project: string;
  readonly id: string;
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly modified: number;
  readonly cwd?: string;
  readonly isLive: boolean;
  /** Absent until the session's files have been read. */
  readonly figures?: SessionFigures;
}

export interface SessionFigures {
  readonly state: string;
  readonly cost?: number;
  readonly pricedCost: number;
  readonly tokens: number;
  readonly agents: number;
  readonly running: number;
  readonly failed: number;
  /** Questions that wait for an answer. */
  readonly questions: number;
}

export interface SessionList {
  /** Of the folder, of all folders of the user, or of a store. */
  readonly scope: "folder" | "all" | "store";
  readonly sessions: readonly SessionRow[];
}

/** One event of the stream of a session or of an agent: each has one of these. */
export interface SessionUpdate {
  readonly session?: SessionOverview;
  readonly agent?: AgentUpdate;
  /** Pieces of answers that models are writing now. */
  readonly live?: readonly LivePiece[];
}

export interface AgentUpdate {
  readonly isLive: boolean;
  /** The first entry that is sent; those before it can be asked for. */
  readonly from: number;
  readonly count: number;
  /** Those that are new or have changed, each with its position. */
  readonly entries: readonly (readonly [number, ConversationEntry])[];
  readonly plan?: Readonly<Record<string, unknown>>;
}

/** A question of the approval inbox, as much of it as a person needs to answer it. */
export interface StudioQuestion extends Pick<Approval, "state"> {
  readonly id: string;
  readonly digest: string;
  readonly at: number;
  readonly tool: string;
  readonly input: string;
  readonly reason: string;
  readonly everyTime: boolean;
  readonly suggestedRules: readonly string[];
  readonly places: readonly { readonly agent: string; readonly path: string }[];
  /** The questions that the call itself puts to the person, with their choices; absent where it asks for a permission. */
  readonly asks?: readonly { readonly text: string; readonly choices: readonly string[] }[];
  /** What was answered, by whom, how often it was used, whether it was revoked. */
  readonly answer?: string;
}

/** A session that is part of its page. */
export interface ExportedSession {
  readonly session: SessionOverview;
  readonly agents: Readonly<Record<string, AgentUpdate>>;
}

export const studioActions = [
  "message",
  "stop",
  "background",
  "resume",
  "fork",
  "approve",
  "deny",
  "revoke",
] as const;
export type StudioAction = (typeof studioActions)[number];

export interface ActRequest {
  readonly project: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly action: StudioAction;
  /** The message, the prompt, or why a call is refused. */
  readonly text?: string;
  /** For `fork`: the id of the message. */
  readonly message?: string;
  /** For answers: the question, and the digest of the call that was seen. */
  readonly question?: string;
  readonly digest?: string;
  readonly grant?: GivenGrant;
}

export interface GivenGrant {
  readonly scope: GrantScope;
  readonly rules?: readonly string[];
  /** By question, what is answered to a call that asks the person something. */
  readonly answers?: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. */
  readonly until?: number;
  readonly maxUses?: number;
  readonly maxUsd?: number;
}

export interface ActOutcome {
  readonly outcome: string;
  /** The session that a fork has made. */
  readonly sessionId?: string;
}

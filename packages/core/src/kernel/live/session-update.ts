import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CallPreview } from "@retinue/gate/approver.ts";
import { type GrantScope, grantScopes } from "@retinue/gate/grants/approval-record.ts";
import type { ConversationEntry } from "../../inspection/conversation-fold.ts";
import type { QuoteParts } from "../../inspection/describe-quote.ts";
import { isAgentId } from "../../journal/session-files.ts";
import type { Approval } from "../approvals/find-approvals.ts";
import type { EditPreview } from "../approvals/preview-edit.ts";
import type { LivePiece } from "./live-text.ts";
import type { MergeView } from "./merge-view.ts";
import type { OverviewBar, SessionOverview } from "./session-overview.ts";
import type { WorkflowView } from "./workflow-view.ts";

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
  /** Calls about which a person is asked where the session runs, such as in a terminal. */
  readonly asked: number;
  readonly calls: number;
  /** The time in which any agent worked. */
  readonly durationMs: number;
  readonly startedAt?: number;
  readonly branch?: string;
  /** What happens now, else the outcome. */
  readonly now: string;
  /** What it was asked and which agents it had, for the search. */
  readonly words: string;
  /** Of a running session, what its first agents did when, from the beginning of its work. */
  readonly lanes?: readonly (readonly OverviewBar[])[];
  readonly today: DaySums;
}

/** Since midnight. */
export interface DaySums {
  readonly cost: number;
  readonly tokensIn: number;
  readonly cached: number;
  readonly tokensOut: number;
  readonly agents: number;
  readonly failed: number;
}

export interface TeamRow {
  readonly name: string;
  /** The session that leads it. */
  readonly project: string;
  readonly sessionId: string;
  readonly title: string;
  /** Without the lead. */
  readonly members: number;
  readonly working: number;
  readonly tasks: number;
  readonly completed: number;
  readonly unread: number;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

export interface SessionList {
  /** Of the folder, of all folders of the user, or of a store. */
  readonly scope: "folder" | "all" | "store";
  readonly sessions: readonly SessionRow[];
  /** Absent where no teams are shown, as of a store. */
  readonly teams?: readonly TeamRow[];
}

/** One event of a stream: each has one of these. */
export interface SessionUpdate {
  readonly list?: SessionList;
  /** The questions of all sessions that are served: those that wait, and the newest of the others. */
  readonly inbox?: readonly InboxQuestion[];
  readonly session?: SessionOverview;
  readonly agent?: AgentUpdate;
  /** Pieces of answers that models are writing now. */
  readonly live?: readonly LivePiece[];
  /** The merge of the session's children; null where there was none. */
  readonly merge?: MergeView | null;
  /** One run of a workflow of the session; null where it has no such run. */
  readonly run?: WorkflowView | null;
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
  /** The agents that ask; `name` is the task of one, where it is known. */
  readonly places: readonly { readonly agent: string; readonly path: string; readonly name?: string }[];
  /** The questions that the call itself puts to the person, with their choices; absent where it asks for a permission. */
  readonly asks?: readonly { readonly text: string; readonly choices: readonly string[] }[];
  /** What was answered, by whom, how often it was used, whether it was revoked. */
  readonly answer?: string;
  readonly answeredAt?: number | undefined;
  /** The folder the call starts in. */
  readonly directory: string;
  /** The command, where the call is one. */
  readonly command?: string;
  /** What the call would change in a file. */
  readonly edit?: EditPreview;
  /** Of agents that start together: what they would take and may do. */
  readonly quote?: QuoteParts;
  /** What the call would do, where its input does not say that by itself: rows of a table, then what would run. */
  readonly preview?: CallPreview;
}

/** A question with the session that it is of. */
export interface InboxQuestion extends StudioQuestion {
  readonly project: string;
  readonly sessionId: string;
  readonly title: string;
  /** What the agent said last before the call; absent where it said nothing. */
  readonly said?: string;
}

/** A session that is part of its page. */
export interface ExportedSession {
  readonly session: SessionOverview;
  readonly agents: Readonly<Record<string, AgentUpdate>>;
  readonly merge?: MergeView;
  readonly runs?: readonly WorkflowView[];
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

/** Reads what a viewer wants done; throws where it cannot be understood. */
export function toActRequest(value: unknown): ActRequest {
  if (!isRecord(value)) throw misuse("An act must be a JSON object.");
  const { project, sessionId, agentId } = value;
  const action = studioActions.find((known) => known === value.action);
  if (action === undefined) throw misuse(`An act must be one of ${studioActions.join(", ")}.`);
  if (typeof project !== "string" || typeof sessionId !== "string")
    throw misuse("An act needs a project and a sessionId.");
  if (typeof agentId !== "string" || !isAgentId(agentId)) throw misuse("An act needs an agentId.");
  return {
    project,
    sessionId,
    agentId,
    action,
    ...textsOf(value),
    ...(value.grant === undefined ? {} : { grant: readGrant(value.grant) }),
  };
}

function textsOf(value: JsonRecord): Pick<ActRequest, "text" | "message" | "question" | "digest"> {
  const names = ["text", "message", "question", "digest"] as const;
  for (const name of names)
    if (value[name] !== undefined && typeof value[name] !== "string")
      throw misuse(`The ${name} of an act must be a string.`);
  return Object.fromEntries(
    names.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])),
  );
}

/** Numbers and rules are checked again where the answer is written down. */
function readGrant(value: unknown): GivenGrant {
  if (!isRecord(value)) throw misuse("The grant of an act must be an object.");
  const scope = grantScopes.find((known) => known === value.scope);
  if (scope === undefined) throw misuse(`The scope of a grant must be one of ${grantScopes.join(", ")}.`);
  const { rules, until, maxUses, maxUsd, answers } = value;
  const areAnswers =
    answers === undefined ||
    (isRecord(answers) && Object.values(answers).every((text) => typeof text === "string"));
  if (!areAnswers) throw misuse("The answers of a grant must be strings keyed by question.");
  const areRules =
    rules === undefined || (Array.isArray(rules) && rules.every((rule) => typeof rule === "string"));
  if (!areRules) throw misuse("The rules of a grant must be a list of strings.");
  for (const number of [until, maxUses, maxUsd])
    if (number !== undefined && typeof number !== "number")
      throw misuse("The limits of a grant must be numbers.");
  return JSON.parse(JSON.stringify({ scope, rules, until, maxUses, maxUsd, answers }));
}

function misuse(message: string): RetinueError {
  return new RetinueError("misuse", message);
}

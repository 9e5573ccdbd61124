import type { ConversationEntry } from "../../inspection/conversation-fold.ts";

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
}

export interface SessionList {
  /** Of the folder, or of all folders of the user. */
  readonly scope: "folder" | "all";
  readonly sessions: readonly SessionRow[];
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

export const studioActions = ["message", "stop", "resume"] as const;
export type StudioAction = (typeof studioActions)[number];

export interface ActRequest {
  readonly project: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly action: StudioAction;
  readonly text?: string;
}

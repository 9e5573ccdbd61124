import { sessionFiles } from "../journal/session-files.ts";
import type { Session } from "./session.ts";

/** Where a session is written down. */
export interface SessionRecord {
  readonly transcript: string;
  /** What a child has said so far, as text. */
  outputOf(agentId: string): string;
}

export function sessionRecord({ discovered, plan }: Pick<Session, "discovered" | "plan">): SessionRecord {
  const files = sessionFiles(discovered.paths.transcripts, plan.sessionId);
  return { transcript: files.transcript, outputOf: (agentId) => files.agent(agentId).output };
}

import { sessionFiles } from "../journal/session-files.ts";
import { agentOutputFile } from "../tasks/agent-output-file.ts";
import type { Session } from "./session.ts";

/** Where a session is written down. */
export interface SessionRecord {
  readonly transcript: string;
  /** For everything else that belongs to it. */
  readonly directory: string;
  /** What a child has said so far, as text. */
  outputOf(agentId: string): string;
}

export function sessionRecord({ discovered, plan }: Pick<Session, "discovered" | "plan">): SessionRecord {
  const files = sessionFiles(discovered.paths.transcripts, plan.sessionId);
  return {
    transcript: files.transcript,
    directory: files.directory,
    outputOf: (agentId) => agentOutputFile(files, agentId),
  };
}

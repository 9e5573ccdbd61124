// @io
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sessionFiles } from "../journal/session-files.ts";
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
    outputOf: (agentId) => files.agent(agentId).output,
  };
}

/**
 * A session that keeps no transcript writes nothing below the home folder: its outputs go to a temporary folder whose name cannot be
 * guessed, which is made with the first of them and removed with the session.
 */
export function withScratch<Facts extends { readonly keepsTranscripts: boolean; readonly scratch?: string }>(
  facts: Facts,
): { readonly facts: Facts; remove(): Promise<void> } {
  if (facts.keepsTranscripts) return { facts, remove: async () => undefined };
  const scratch = join(tmpdir(), `retinue-${randomUUID()}`);
  return {
    facts: { ...facts, scratch },
    // What cannot be removed is left to the system, like anything in its temporary folder.
    remove: () => rm(scratch, { recursive: true, force: true }).catch(() => undefined),
  };
}

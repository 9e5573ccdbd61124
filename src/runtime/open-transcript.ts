import type { Message } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { Fault } from "../foundation/fault.ts";
import { findLatestSession, findSession } from "../journal/find-sessions.ts";
import { forkSession } from "../journal/fork-session.ts";
import type { IdSource } from "../journal/id-source.ts";
import { loadSession } from "../journal/load-session.ts";
import { checkSessionId, sessionFiles } from "../journal/session-files.ts";
import type { TranscriptFacts } from "../journal/transcript-line.ts";
import { createTranscriptWriter } from "../journal/transcript-writer.ts";
import { openAppendLog } from "../storage/append-log.ts";
import type { SessionOptions } from "./runtime-options.ts";

/** Which session a run belongs to, before anything is opened. */
export interface ChosenSession {
  readonly sessionId: string;
  readonly isResumed: boolean;
}

/** A session's conversation so far, and the pen that goes on with it. */
export interface OpenTranscript {
  readonly history: readonly Message[];
  readonly record: (event: RunEvent) => void;
  readonly close: () => void;
}

type SessionChoice = Pick<SessionOptions, "resume" | "continue" | "forkSession" | "sessionId">;

export async function chooseSession(
  choice: SessionChoice,
  transcripts: string,
  ids: IdSource,
): Promise<ChosenSession> {
  const own = choice.sessionId === undefined ? undefined : checkSessionId(choice.sessionId);
  const from = await findResumed(choice, transcripts);
  if (from === undefined) return { sessionId: own ?? ids.uuid(), isResumed: false };
  if (choice.forkSession !== true) {
    if (own !== undefined && own !== from) {
      throw new Fault("session-conflict", "A resumed session keeps its id.", {
        advice: "Leave the session id out, or fork the session.",
      });
    }
    return { sessionId: from, isResumed: true };
  }
  const forked = await forkSession({ transcripts, from, ids, ...(own === undefined ? {} : { to: own }) });
  return { sessionId: forked.sessionId, isResumed: true };
}

async function findResumed(choice: SessionChoice, transcripts: string): Promise<string | undefined> {
  if (choice.resume !== undefined) {
    const found = await findSession(transcripts, choice.resume);
    if (found.type === "found") return found.session.id;
    const what = JSON.stringify(choice.resume);
    if (found.type === "ambiguous") {
      const ids = found.sessions.map(({ id }) => id).join(", ");
      throw new Fault("session-ambiguous", `Several sessions have the title ${what}.`, {
        advice: `Name one by id: ${ids}.`,
      });
    }
    const near = found.nearest === undefined ? "" : ` Did you mean ${JSON.stringify(found.nearest)}?`;
    throw new Fault("session-missing", `There is no session ${what} in this folder.${near}`);
  }
  if (choice.continue !== true) return undefined;
  return (await findLatestSession(transcripts))?.id;
}

export interface OpenOptions extends ChosenSession {
  readonly transcripts: string;
  readonly ids: IdSource;
  readonly now: () => number;
  readonly facts: () => TranscriptFacts;
}

/** Opens the session's file for writing; only one process may have it. */
export async function openTranscript(options: OpenOptions): Promise<OpenTranscript> {
  const { transcript: file } = sessionFiles(options.transcripts, options.sessionId);
  const loaded = options.isResumed ? await loadSession(file) : undefined;
  const log = openAppendLog(file, { expectLength: loaded?.length ?? 0 });
  const writer = createTranscriptWriter({
    log,
    ids: options.ids,
    now: options.now,
    facts: options.facts,
    ...(loaded?.leaf === undefined ? {} : { leaf: loaded.leaf }),
  });
  // The conversation already answers calls that a crash cut off; now the file does so too.
  if (loaded !== undefined && loaded.interrupted.length > 0) {
    writer.record({
      type: "user-added",
      message: { role: "user", content: loaded.interrupted },
      origin: "tool-results",
    });
  }
  return { history: loaded?.messages ?? [], record: writer.record, close: () => log.close() };
}

/** For sessions that keep nothing. */
export const noTranscript: OpenTranscript = { history: [], record: () => undefined, close: () => undefined };

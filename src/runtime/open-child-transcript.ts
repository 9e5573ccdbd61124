import { version } from "../foundation/version.ts";
import type { IdSource } from "../journal/id-source.ts";
import { journalPlan } from "../journal/journaled-plan.ts";
import { loadSession } from "../journal/load-session.ts";
import type { TranscriptFacts } from "../journal/transcript-line.ts";
import { createTranscriptWriter } from "../journal/transcript-writer.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import { openAppendLog } from "../storage/append-log.ts";
import type { ChildRecord } from "../tasks/child-host.ts";
import { type OpenTranscript, writeUnrecorded } from "./open-transcript.ts";

export interface ChildTranscriptOptions {
  readonly file: string;
  /** False keeps nothing. */
  readonly isKept: boolean;
  readonly isResumed: boolean;
  /** Written down before anything else of the run. */
  readonly plan: ChildPlan;
  readonly ids: IdSource;
  readonly now: () => number;
  readonly facts: () => Omit<TranscriptFacts, "version">;
}

/** Opens a child's own transcript: a new one, or one that goes on. */
export async function openChildTranscript(
  options: ChildTranscriptOptions,
): Promise<OpenTranscript & Pick<ChildRecord, "told">> {
  const { file, ids, now } = options;
  const loaded = options.isResumed ? await loadSession(file, { sidechain: true }) : undefined;
  if (!options.isKept)
    return { history: loaded?.messages ?? [], record: () => undefined, close: () => undefined };
  const log = openAppendLog(file, { expectLength: loaded?.length ?? 0 });
  const facts = (): TranscriptFacts => ({ ...options.facts(), version });
  const writer = createTranscriptWriter({
    log,
    ids,
    now,
    facts,
    leaf: loaded?.leaf,
    sources: loaded?.sources,
  });
  try {
    writer.plan(journalPlan(options.plan), "now");
    writeUnrecorded(writer, loaded);
  } catch (error) {
    log.close();
    throw error;
  }
  return {
    history: loaded?.messages ?? [],
    record: writer.record,
    reported: writer.reported,
    close: () => log.close(),
  };
}

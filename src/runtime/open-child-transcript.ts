import { basename } from "node:path";
import { retryWhileScarce } from "../foundation/scarce.ts";
import { version } from "../foundation/version.ts";
import type { IdSource } from "../journal/id-source.ts";
import { journalPlan } from "../journal/journaled-plan.ts";
import { loadSession } from "../journal/load-session.ts";
import type { TranscriptFacts } from "../journal/transcript-line.ts";
import { createTranscriptWriter } from "../journal/transcript-writer.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import { openAppendLog } from "../storage/append-log.ts";
import type { ChildRecord } from "../tasks/child-host.ts";
import {
  closeLog,
  type Keeping,
  type OpenTranscript,
  tellDamage,
  waitForFile,
  writeUnrecorded,
} from "./open-transcript.ts";

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
  readonly keeping: Keeping;
}

/** Opens a child's own transcript: a new one, or one that goes on. */
export async function openChildTranscript(
  options: ChildTranscriptOptions,
): Promise<OpenTranscript & Pick<ChildRecord, "told">> {
  const { file, ids, now, keeping } = options;
  if (options.isKept && options.isResumed) await waitForFile(file, keeping);
  const loaded = options.isResumed ? await loadSession(file, { sidechain: true }) : undefined;
  tellDamage(basename(file), loaded?.damage, keeping);
  if (!options.isKept)
    return { history: loaded?.messages ?? [], record: () => undefined, close: async () => undefined };
  const { durability, takeOver = false } = keeping;
  const log = await retryWhileScarce(() =>
    openAppendLog(file, { expectLength: loaded?.length ?? 0, durability, takeOver }),
  );
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
    // Whoever hears that it was started must find it again, whatever happens.
    await writer.commit();
  } catch (error) {
    log.close();
    throw error;
  }
  return {
    history: loaded?.messages ?? [],
    record: writer.record,
    told: writer.told,
    commit: writer.commit,
    close: () => closeLog(log, keeping),
  };
}

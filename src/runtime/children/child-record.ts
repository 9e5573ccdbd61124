import { basename } from "node:path";
import type { Message } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { retryWhileScarce } from "../../foundation/retry-while-scarce.ts";
import { version } from "../../foundation/version.ts";
import { journalPlan } from "../../journal/journaled-plan.ts";
import { loadSession } from "../../journal/session-choices.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { TranscriptFacts } from "../../journal/transcript-facts.ts";
import { createTranscriptWriter, type ReportedEvent } from "../../journal/transcript-writer.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import { openAppendLog } from "../../storage/append-log.ts";
import { replaceWholeFile } from "../../storage/file-error.ts";
import { agentOutputFile, openAgentOutput } from "../../tasks/agent-output-file.ts";
import { metaOf } from "../../tasks/recovery/child-meta.ts";
import { openQueueMark, queueMarkFile } from "../../tasks/watch-control.ts";
import {
  closeLog,
  type Keeping,
  type OpenTranscript,
  reportDamage,
  waitForFile,
  writeUnrecorded,
} from "../open-transcript.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** A child's own record: its conversation so far, and the writer that continues it. */
export interface ChildRecord {
  readonly history: readonly Message[];
  readonly record: (event: RunEvent) => void;
  /** Resolves when everything said so far would survive a power cut; absent where nothing is kept. */
  readonly commit?: () => Promise<void>;
  /** Brings the rest to the disk and gives the file back; never rejects. */
  readonly close: () => Promise<void>;
  /** Writes down that hooks are about to see it; resolves when that would survive a power cut. */
  readonly reported?: (event: ReportedEvent) => Promise<void>;
  readonly outputFile: string;
  /** Marks it for other processes as one that waits for a place, until it leaves the queue. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
}

export interface ChildRecordOptions {
  readonly world: RuntimeContext;
  /** Takes the file also from another process that holds it. */
  readonly takeOver: boolean;
  /** Counts those that wait for a place. */
  readonly nextQueued: () => number;
}

/** How long a child that is resumed may wait for its file. */
const openLimitMs = 60_000;

/** Opens everything that is kept of a child: transcript, sidecar, output, and its mark in the queue. */
export async function openChildRecord(plan: ChildPlan, options: ChildRecordOptions): Promise<ChildRecord> {
  const { world, takeOver } = options;
  const { durability, notice } = world;
  const files = sessionFiles(world.discovered.paths.transcripts, plan.sessionId);
  const own = files.agent(plan.agent.id);
  const outputFile = agentOutputFile(files, plan.agent.id);
  const keeping = { durability, takeOver, signal: AbortSignal.timeout(openLimitMs), notice };
  const opened = await openChildTranscript(plan, { file: own.transcript, world, keeping });
  const { observer } = world;
  const transcript: typeof opened = {
    ...opened,
    record(event) {
      observer?.event(plan, event);
      opened.record(event);
    },
  };
  if (!world.keepsTranscripts) return { ...transcript, outputFile };
  replaceWholeFile(own.meta, `${JSON.stringify(metaOf(plan))}\n`);
  const output = openAgentOutput(outputFile);
  return {
    ...transcript,
    ...openQueueMark(queueMarkFile(own.transcript), options.nextQueued),
    outputFile,
    record(event) {
      transcript.record(event);
      output.record(event);
    },
    async close() {
      output.close();
      await transcript.close();
    },
  };
}

/** A child's own transcript: a new one, or one that continues. The plan is on disk before anything else of the run. */
async function openChildTranscript(
  plan: ChildPlan,
  {
    file,
    world,
    keeping,
  }: { readonly file: string; readonly world: RuntimeContext; readonly keeping: Keeping },
): Promise<OpenTranscript & Pick<ChildRecord, "reported">> {
  const { resumed } = plan.task;
  if (world.keepsTranscripts && resumed) await waitForFile(file, keeping);
  const loaded = resumed ? await loadSession(file, { sidechain: true }) : undefined;
  reportDamage(basename(file), loaded?.damage, keeping);
  const history = loaded?.messages ?? [];
  if (!world.keepsTranscripts) return { history, record: () => undefined, close: async () => undefined };
  const { durability, takeOver = false } = keeping;
  const log = await retryWhileScarce(() =>
    openAppendLog(file, { expectLength: loaded?.length ?? 0, durability, takeOver }),
  );
  const writer = createTranscriptWriter({
    log,
    ids: world.ids,
    now: world.epochMs,
    facts: () => factsOf(plan, world),
    leaf: loaded?.leaf,
    sources: loaded?.sources,
  });
  try {
    writer.plan(journalPlan(plan), "now");
    writeUnrecorded(writer, loaded);
    // A caller that is notified of its start must find it again, whatever happens.
    await writer.commit();
  } catch (error) {
    log.close();
    throw error;
  }
  const { record, reported, commit } = writer;
  return { history, record, reported, commit, close: () => closeLog(log, keeping) };
}

function factsOf(plan: ChildPlan, { entrypoint }: RuntimeContext): TranscriptFacts {
  return {
    sessionId: plan.sessionId,
    cwd: plan.directory,
    entrypoint,
    agentId: plan.agent.id,
    permissionMode: plan.policy.mode,
    version,
  };
}

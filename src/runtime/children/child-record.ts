import { basename } from "node:path";
import type { Message } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";
import { retryWhileScarce } from "../../foundation/retry-while-scarce.ts";
import { version } from "../../foundation/version.ts";
import { journalPlan } from "../../journal/journaled-plan.ts";
import { rebuildConversation } from "../../journal/rebuild-conversation.ts";
import { loadSession } from "../../journal/session-choices.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { TranscriptFacts } from "../../journal/transcript-facts.ts";
import { createTranscriptWriter, type ReportedEvent } from "../../journal/transcript-writer.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import { openAppendLog } from "../../storage/append-log.ts";
import { replaceWholeFile } from "../../storage/create-whole-file.ts";
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
  /** Where its work can be followed; undefined where nothing is kept. */
  readonly outputFile: string | undefined;
  /** Marks it for other processes as one that waits for a place, until it leaves the queue. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
}

export interface ChildRecordOptions {
  readonly runtime: RuntimeContext;
  /** Takes the file also from another process that holds it. */
  readonly takeOver: boolean;
  /** Has the transcripts where nothing is kept on disk. */
  readonly memory: ChildMemory;
  /** Counts those that wait for a place. */
  readonly nextQueued: () => number;
}

/** Transcripts of the children of a session that keeps nothing on disk, so that it can resume them while it runs. */
export interface ChildMemory {
  records(agentId: string): readonly JsonRecord[] | undefined;
  append(agentId: string, lines: readonly string[]): number;
}

/** As many as the task manager keeps of those that have ended; the one that was silent longest goes first. */
const maxRemembered = 200;

export function createChildMemory(): ChildMemory {
  const kept = new Map<string, string[]>();
  return {
    records: (agentId) => kept.get(agentId)?.map((line) => JSON.parse(line) as JsonRecord),
    append(agentId, lines) {
      const own = kept.get(agentId) ?? [];
      own.push(...lines);
      kept.delete(agentId);
      kept.set(agentId, own);
      for (const oldest of kept.keys()) {
        if (kept.size <= maxRemembered) break;
        kept.delete(oldest);
      }
      return lines.length;
    },
  };
}

/** How long a child that is resumed may wait for its file. */
const openLimitMs = 60_000;

/** Opens everything that is kept of a child: transcript, sidecar, output, and its mark in the queue. */
export async function openChildRecord(plan: ChildPlan, options: ChildRecordOptions): Promise<ChildRecord> {
  const { runtime, takeOver } = options;
  const { durability, notice } = runtime;
  const files = sessionFiles(runtime.discovered.paths.transcripts, plan.sessionId);
  const own = files.agent(plan.agent.id);
  const outputFile = agentOutputFile(files, plan.agent.id);
  const keeping = { durability, takeOver, signal: AbortSignal.timeout(openLimitMs), notice };
  const opened = runtime.keepsTranscripts
    ? await openChildTranscript(plan, { file: own.transcript, runtime, keeping })
    : await rememberChild(plan, options);
  const { observer } = runtime;
  const transcript: typeof opened = {
    ...opened,
    record(event) {
      observer?.event(plan, event);
      opened.record(event);
    },
  };
  if (!runtime.keepsTranscripts) return { ...transcript, outputFile: undefined };
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
    runtime,
    keeping,
  }: { readonly file: string; readonly runtime: RuntimeContext; readonly keeping: Keeping },
): Promise<OpenTranscript & Pick<ChildRecord, "reported">> {
  const { resumed } = plan.task;
  if (resumed) await waitForFile(file, keeping);
  const loaded = resumed ? await loadSession(file, { sidechain: true }) : undefined;
  reportDamage(basename(file), loaded?.damage, keeping);
  const history = loaded?.messages ?? [];
  const { durability, takeOver = false } = keeping;
  const log = await retryWhileScarce(() =>
    openAppendLog(file, { expectLength: loaded?.length ?? 0, durability, takeOver }),
  );
  const writer = createTranscriptWriter({
    log,
    ids: runtime.ids,
    now: runtime.epochMs,
    facts: factsOf(plan, runtime),
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

/** The same transcript, in memory alone. */
async function rememberChild(
  plan: ChildPlan,
  { runtime, memory }: Pick<ChildRecordOptions, "runtime" | "memory">,
): Promise<OpenTranscript & Pick<ChildRecord, "reported">> {
  const { id } = plan.agent;
  const loaded = plan.task.resumed
    ? rebuildConversation(memory.records(id) ?? [], { sidechain: true })
    : undefined;
  const writer = createTranscriptWriter({
    log: { append: (lines) => memory.append(id, lines) },
    ids: runtime.ids,
    now: runtime.epochMs,
    facts: factsOf(plan, runtime),
    leaf: loaded?.leaf,
    sources: loaded?.sources,
  });
  writer.plan(journalPlan(plan), "now");
  writeUnrecorded(writer, loaded);
  return { history: loaded?.messages ?? [], record: writer.record, close: async () => undefined };
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

import { basename } from "node:path";
import type { Message } from "../../conversation/message.ts";
import type { EventSink, RunEvent } from "../../conversation/run-event.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";
import { retryWhileScarce } from "../../foundation/retry-while-scarce.ts";
import { version } from "../../foundation/version.ts";
import { journalPlan } from "../../journal/journaled-plan.ts";
import { rebuildConversation } from "../../journal/rebuild-conversation.ts";
import { type LoadedSession, loadSession } from "../../journal/session-choices.ts";
import type { TranscriptFacts } from "../../journal/transcript-facts.ts";
import {
  createTranscriptWriter,
  type ReportedEvent,
  transcriptEvents,
} from "../../journal/transcript-writer.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import { openAppendLog } from "../../storage/append-log.ts";
import { replaceWholeFile } from "../../storage/create-whole-file.ts";
import { metaOf } from "../../tasks/child-meta.ts";
import { openAgentOutput } from "../../tasks/open-agent-output.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import { openQueueMark, queueMarkFile } from "../../tasks/watch-control.ts";
import { liveTextEvents } from "../live/live-text.ts";
import {
  closeLog,
  type Keeping,
  type OpenTranscript,
  reportDamage,
  waitForFile,
  writeUnrecorded,
} from "../open-transcript.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { AgentServices } from "./equip-agent.ts";

/** A child's own record: its conversation so far, and the writer that continues it. */
export interface ChildRecord {
  readonly history: readonly Message[];
  /** Where its events are kept and shown. */
  readonly sinks: readonly EventSink[];
  /** What its run may ask of it; a record that cannot be written any more does not keep hooks from running. */
  readonly control: Pick<TaskControl, "reported" | "commit">;
  /** Brings the rest to the disk and gives the file back; never rejects. */
  readonly close: () => Promise<void>;
  /** Where its conversation is kept, or would be. */
  readonly transcript: string;
  /** Where its work can be followed; undefined where nothing is kept. */
  readonly outputFile: string | undefined;
  /** Marks it for other processes as one that waits for a place, until it leaves the queue. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
}

export interface ChildRecordOptions {
  readonly services: Pick<AgentServices, "runtime" | "files" | "liveText">;
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
  const { services, takeOver } = options;
  const { runtime } = services;
  const { durability, notice } = runtime;
  const followers = followersOf(plan, services);
  const { transcript: file, meta, output: outputFile } = services.files.agent(plan.agent.id);
  if (!runtime.keepsTranscripts) {
    const { record, ...remembered } = rememberChild(plan, { runtime, memory: options.memory });
    const sinks = [...followers, transcriptSink(record)];
    return { ...remembered, control: {}, sinks, transcript: file, outputFile: undefined };
  }
  const keeping = { durability, takeOver, signal: AbortSignal.timeout(openLimitMs), notice };
  const { record, ...kept } = await openChildTranscript(plan, { file, runtime, keeping });
  replaceWholeFile(meta, `${JSON.stringify(metaOf(plan))}\n`);
  const output = openAgentOutput(outputFile);
  return {
    ...kept,
    ...openQueueMark(queueMarkFile(file), options.nextQueued),
    transcript: file,
    outputFile,
    sinks: [...followers, transcriptSink(record), output],
    async close() {
      output.close();
      await kept.close();
    },
  };
}

function transcriptSink(take: EventSink["take"]): EventSink {
  return { types: transcriptEvents, take };
}

/** A child's own transcript: a new one, or one that continues. The plan is on disk before anything else of the run. */
async function openChildTranscript(
  plan: ChildPlan,
  {
    file,
    runtime,
    keeping,
  }: { readonly file: string; readonly runtime: RuntimeContext; readonly keeping: Keeping },
): Promise<Pick<OpenTranscript, "history" | "record" | "close"> & Pick<ChildRecord, "control">> {
  const loaded = plan.task.resumed ? await loadEarlier(file, keeping) : undefined;
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
    if (loaded !== undefined) writeUnrecorded(writer, loaded);
    // A caller that is notified of its start must find it again, whatever happens.
    await writer.commit();
  } catch (error) {
    log.close();
    throw error;
  }
  const { record, commit } = writer;
  const control = {
    commit,
    async reported(event: ReportedEvent) {
      try {
        await writer.reported(event);
      } catch {
        // The child ends by its next line.
      }
    },
  };
  return { history, record, control, close: () => closeLog(log, keeping) };
}

async function loadEarlier(file: string, keeping: Keeping): Promise<LoadedSession> {
  await waitForFile(file, keeping);
  const loaded = await loadSession(file, { sidechain: true });
  reportDamage(basename(file), loaded.damage, keeping);
  return loaded;
}

/** The same transcript, in memory alone. */
function rememberChild(
  plan: ChildPlan,
  { runtime, memory }: { readonly runtime: RuntimeContext; readonly memory: ChildMemory },
): Pick<OpenTranscript, "history" | "record" | "close"> {
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
  if (loaded !== undefined) writeUnrecorded(writer, loaded);
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

/** Those who follow an agent while it runs: viewers in other processes, and those who measure. */
export function followersOf(
  plan: RunPlan,
  { liveText, runtime: { observer } }: Pick<AgentServices, "liveText" | "runtime">,
): readonly EventSink[] {
  const agentId = "task" in plan ? plan.agent.id : "main";
  return [
    { types: liveTextEvents, take: (event: RunEvent) => liveText.hear(agentId, event) },
    ...(observer === undefined ? [] : [{ take: (event: RunEvent) => observer.event(plan, event) }]),
  ];
}

import { basename } from "node:path";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import type { LockGroup } from "@retinue/base/storage/owner-lock.ts";
import type { EventSink } from "../conversation/run-event.ts";
import { rebuildConversation } from "../journal/rebuild-conversation.ts";
import { loadSession } from "../journal/session-choices.ts";
import type { AgentFiles } from "../journal/session-files.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import { childMeta, openQueueMark, queueMarkFile } from "./child-meta.ts";
import { openAgentOutput } from "./open-agent-output.ts";
import { type AgentRecord, openRecord, type RecordKeeping } from "./open-record.ts";

/** A child's record, with what is beside its transcript: sidecar, output, and its mark in the queue. */
export interface ChildRecord extends AgentRecord {
  /** Where its work can be followed; undefined where nothing is kept. */
  readonly outputFile: string | undefined;
  /** Marks it for other processes as one that waits for a place, until it leaves the queue. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
}

interface ChildRecordOptions {
  readonly session: RecordKeeping;
  readonly transcripts: string;
  readonly files: AgentFiles;
  /** Take its events before its record does. */
  readonly followers: readonly EventSink[];
  /** Takes the file also from another process that holds it. */
  readonly takeOver: boolean;
  /** Has the transcripts where nothing is kept on disk. */
  readonly memory: ChildMemory;
  /** The locks of its siblings. */
  readonly locks: LockGroup;
  /** Counts those that wait for a place. */
  readonly nextQueued: () => number;
  readonly observer?: ChildObserver | undefined;
}

/** Shows the transcripts of children elsewhere: the path of one, and its new lines; first what its sidecar holds. */
export type ChildObserver = (file: string, lines: readonly string[]) => void;

/** How long a child that is resumed may wait for its file. */
const openLimitMs = 60_000;

export async function openChildRecord(
  plan: ChildPlan,
  {
    session,
    transcripts,
    files,
    followers,
    takeOver,
    memory,
    locks,
    nextQueued,
    observer,
  }: ChildRecordOptions,
): Promise<ChildRecord> {
  const { transcript: file, meta, output: outputFile } = files;
  const { id } = plan.agent;
  const isKept = session.keepsTranscripts;
  const reading = { sidechain: true };
  const load = isKept
    ? () => loadSession(file, reading)
    : async () => rebuildConversation(memory.records(id) ?? [], reading);
  const record = await openRecord(plan, {
    session,
    transcripts,
    target: isKept ? { file } : { append: (lines) => memory.append(id, lines) },
    load: plan.task.resumed ? load : undefined,
    reading,
    name: basename(file),
    takeOver,
    locks,
    signal: AbortSignal.timeout(openLimitMs),
    observer: isKept && observer !== undefined ? { appended: (lines) => observer(file, lines) } : undefined,
  });
  if (!isKept) return { ...record, sinks: [...followers, ...record.sinks], outputFile: undefined };
  const beside = childMeta(plan);
  replaceWholeFile(meta, `${JSON.stringify(beside)}\n`);
  observer?.(file, [JSON.stringify({ type: "agent_metadata", ...beside })]);
  const output = openAgentOutput(outputFile);
  return {
    ...record,
    ...openQueueMark(queueMarkFile(file), nextQueued),
    outputFile,
    sinks: [...followers, ...record.sinks, output],
    async close() {
      output.close();
      await record.close();
    },
  };
}

/** Transcripts of the children of a session that keeps nothing on disk, so that it can resume them while it runs. */
export interface ChildMemory {
  records(agentId: string): readonly JsonRecord[] | undefined;
  append(agentId: string, lines: readonly string[]): number;
}

/** As many as the task manager keeps of those that have ended; the longest silent one goes first. */
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

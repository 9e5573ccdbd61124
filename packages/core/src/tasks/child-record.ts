// @io
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { isRecord, type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { EventSink } from "../conversation/run-event.ts";
import { rebuildConversation } from "../journal/rebuild-conversation.ts";
import { loadSession } from "../journal/session-choices.ts";
import type { AgentFiles } from "../journal/session-files.ts";
import { type ChildPlan, levelOf } from "../planning/agent-plan.ts";
import { openAgentOutput } from "./open-agent-output.ts";
import { type AgentRecord, openRecord, type RecordKeeping } from "./open-record.ts";
import "./watch-control.ts";
import { readFileSync, writeFileSync } from "node:fs";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";

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
  /** Counts those that wait for a place. */
  readonly nextQueued: () => number;
}

/** How long a child that is resumed may wait for its file. */
const openLimitMs = 60_000;

export async function openChildRecord(
  plan: ChildPlan,
  { session, transcripts, files, followers, takeOver, memory, nextQueued }: ChildRecordOptions,
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
    signal: AbortSignal.timeout(openLimitMs),
  });
  if (!isKept) return { ...record, sinks: [...followers, ...record.sinks], outputFile: undefined };
  replaceWholeFile(meta, `${JSON.stringify(childMeta(plan))}\n`);
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

/** What is beside a child's transcript, in the words existing viewers read; enough to take the child up again. */
interface ChildMeta {
  readonly agentType: string;
  readonly description: string;
  readonly toolUseId?: string;
  readonly spawnDepth: number;
  readonly workflowPhase?: string;
  /** The subagent that started it; absent for a child of the main agent. */
  readonly parentAgentId?: string;
  readonly name?: string;
  readonly model: string;
  readonly provider?: string;
}

export function childMeta({ task, chosenModel }: Pick<ChildPlan, "task" | "chosenModel">): ChildMeta {
  return {
    agentType: task.agentType,
    description: task.description,
    toolUseId: task.callId,
    spawnDepth: levelOf({ task }),
    ...(task.ancestors === undefined ? {} : { parentAgentId: task.parentId }),
    name: task.name,
    workflowPhase: task.workflow?.phase,
    model: chosenModel.id,
    provider: chosenModel.provider,
  };
}

/** What an existing sidecar says of a child. */
export interface KnownChild {
  readonly agentType: string;
  readonly description?: string;
  readonly name?: string;
  readonly model?: ChosenModel;
  /** The call that asked for it. */
  readonly toolUseId?: string;
  /** Absent for a child of the main agent. */
  readonly parentAgentId?: string;
}

/** What a sidecar says, however it was written; undefined when it names no agent type. */
export function readChildMeta(text: string): KnownChild | undefined {
  const value = parseJson(text);
  if (!isRecord(value)) return undefined;
  const { agentType, description, name, model, provider, toolUseId, parentAgentId } = value;
  if (typeof agentType !== "string") return undefined;
  return {
    agentType,
    ...(typeof description === "string" ? { description } : {}),
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof toolUseId === "string" ? { toolUseId } : {}),
    ...(typeof parentAgentId === "string" ? { parentAgentId } : {}),
    ...(typeof model === "string"
      ? { model: typeof provider === "string" ? { id: model, provider } : { id: model } }
      : {}),
  };
}

/** What is beside a child's transcript; undefined when there is no such child. */
export async function loadChildMeta(file: string): Promise<KnownChild | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text === undefined ? undefined : readChildMeta(text);
}

/** Where other processes see that a child waits for a place; the number orders those of one session. */
export function queueMarkFile(transcript: string): string {
  return transcript.replace(/\.jsonl$/, ".queued");
}

interface QueueMark {
  enterQueue(): void;
  leaveQueue(): void;
}

/** The mark is for people who look; a disk that takes none does not keep the child from its place. */
export function openQueueMark(file: string, nextNumber: () => number): QueueMark {
  let isSet = false;
  return {
    enterQueue() {
      try {
        writeFileSync(file, `${nextNumber()}\n`, { mode: 0o600 });
        isSet = true;
      } catch {
        isSet = false;
      }
    },
    leaveQueue() {
      if (isSet) removeIfPossible(file);
      isSet = false;
    },
  };
}

/** The number of a child that waits; undefined for one that does not. */
export function loadQueueNumber(file: string): number | undefined {
  try {
    const number = Number(readFileSync(file, "utf8").trim());
    return Number.isSafeInteger(number) && number > 0 ? number : undefined;
  } catch {
    return undefined;
  }
}

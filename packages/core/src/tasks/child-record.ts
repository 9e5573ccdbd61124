import { basename } from "node:path";
import { isRecord, type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { Message, ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import type { EventSink } from "../conversation/run-event.ts";
import { journalPlan } from "../journal/journaled-plan.ts";
import {
  type Keeping,
  keepTranscript,
  reportDamage,
  waitForFile,
  writeUnrecorded,
} from "../journal/keep-transcript.ts";
import { rebuildConversation } from "../journal/rebuild-conversation.ts";
import { type LoadedSession, loadSession } from "../journal/session-choices.ts";
import type { AgentFiles } from "../journal/session-files.ts";
import type { TranscriptFacts } from "../journal/transcript-facts.ts";
import {
  createTranscriptWriter,
  type IdSource,
  type ReportedEvent,
  transcriptEvents,
} from "../journal/transcript-writer.ts";
import { type ChildPlan, levelOf } from "../planning/agent-plan.ts";
import { openAgentOutput } from "./open-agent-output.ts";
import type { TaskControl } from "./task-manager.ts";
import { openQueueMark, queueMarkFile } from "./watch-control.ts";

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

/** What records need to know of their session. */
export interface RecordKeeping {
  readonly keepsTranscripts: boolean;
  readonly durability: Durability;
  readonly entrypoint: string;
  readonly ids: IdSource;
  /** Milliseconds since 1970. */
  readonly epochMs: () => number;
  readonly notice?: ((text: string) => void) | undefined;
}

export interface ChildRecordOptions {
  /** How the session keeps records. */
  readonly session: RecordKeeping;
  readonly files: AgentFiles;
  /** Take its events besides its record. */
  readonly followers: readonly EventSink[];
  /** Takes the file also from another process that holds it. */
  readonly takeOver: boolean;
  /** Has the transcripts where nothing is kept on disk. */
  readonly memory: ChildMemory;
  /** Counts those that wait for a place. */
  readonly nextQueued: () => number;
  /** Of one that started agents itself: what is known of those whose calls were cut off. */
  readonly answersOf?: (calls: readonly ToolUseBlock[]) => Promise<ReadonlyMap<string, ToolResultBlock>>;
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
  const { session, files, followers, takeOver } = options;
  const { transcript: file, meta, output: outputFile } = files;
  const { durability, notice } = session;
  if (!session.keepsTranscripts) {
    const { record, ...remembered } = rememberChild(plan, session, options.memory);
    const sinks = [...followers, transcriptSink(record)];
    return { ...remembered, control: {}, sinks, transcript: file, outputFile: undefined };
  }
  const keeping = { durability, takeOver, signal: AbortSignal.timeout(openLimitMs), notice };
  const { answersOf } = options;
  const { record, ...kept } = await openChildTranscript(plan, { file, session, keeping, answersOf });
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

interface OpenRecord extends Pick<ChildRecord, "history" | "close"> {
  readonly record: EventSink["take"];
}

/** A child's own transcript: a new one, or one that continues. The plan is on disk before anything else of the run. */
async function openChildTranscript(
  plan: ChildPlan,
  {
    file,
    session,
    keeping,
    answersOf,
  }: Pick<ChildRecordOptions, "session" | "answersOf"> & { readonly file: string; readonly keeping: Keeping },
): Promise<OpenRecord & Pick<ChildRecord, "control">> {
  const loaded = plan.task.resumed ? await loadEarlier(file, keeping, answersOf) : undefined;
  const { writer, close } = await keepTranscript(file, {
    loaded,
    ids: session.ids,
    now: session.epochMs,
    facts: factsOf(plan, session),
    keeping,
    async begin(logWriter) {
      logWriter.plan(journalPlan(plan), "now");
      if (loaded !== undefined) writeUnrecorded(logWriter, loaded);
      // A caller that is notified of its start must find it again, whatever happens.
      await logWriter.commit();
    },
  });
  const control = {
    commit: writer.commit,
    async reported(event: ReportedEvent) {
      try {
        await writer.reported(event);
      } catch {
        // The child ends by its next line.
      }
    },
  };
  return { history: loaded?.messages ?? [], record: writer.record, control, close };
}

async function loadEarlier(
  file: string,
  keeping: Keeping,
  answersOf: ChildRecordOptions["answersOf"],
): Promise<LoadedSession> {
  await waitForFile(file, keeping);
  const loaded = await loadSession(file, { sidechain: true });
  reportDamage(basename(file), loaded.damage, keeping);
  const known = await answersOf?.(loaded.inFlight.map(({ call }) => call));
  if (known === undefined || known.size === 0) return loaded;
  return { ...loaded, ...rebuildConversation(loaded.records, { sidechain: true, known }) };
}

/** The same transcript, in memory alone. */
function rememberChild(plan: ChildPlan, session: RecordKeeping, memory: ChildMemory): OpenRecord {
  const { id } = plan.agent;
  const loaded = plan.task.resumed
    ? rebuildConversation(memory.records(id) ?? [], { sidechain: true })
    : undefined;
  const writer = createTranscriptWriter({
    log: { append: (lines) => memory.append(id, lines) },
    ids: session.ids,
    now: session.epochMs,
    facts: factsOf(plan, session),
    leaf: loaded?.leaf,
    sources: loaded?.sources,
  });
  writer.plan(journalPlan(plan), "now");
  if (loaded !== undefined) writeUnrecorded(writer, loaded);
  return { history: loaded?.messages ?? [], record: writer.record, close: async () => undefined };
}

function factsOf(plan: ChildPlan, { entrypoint }: RecordKeeping): TranscriptFacts {
  return {
    sessionId: plan.sessionId,
    cwd: plan.directory,
    entrypoint,
    agentId: plan.agent.id,
    permissionMode: plan.policy.mode,
    version,
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

function metaOf({ task, chosenModel }: Pick<ChildPlan, "task" | "chosenModel">): ChildMeta {
  return {
    agentType: task.agentType,
    description: task.description,
    toolUseId: task.callId,
    spawnDepth: levelOf({ task }),
    ...(task.ancestors === undefined ? {} : { parentAgentId: task.parentId }),
    name: task.name,
    ...(task.workflow?.phase === undefined ? {} : { workflowPhase: task.workflow.phase }),
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

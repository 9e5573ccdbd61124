// @io
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { hasLiveOwner, hasLockFile, lookAtLock } from "@retinue/base/storage/owner-lock.ts";
import { type ParsedLines, readLines } from "@retinue/base/storage/read-lines.ts";
import type { InFlightCall } from "../conversation/interrupted-agent.ts";
import { readEarlierPlans } from "../journal/journaled-plan.ts";
import { readAssistantBlocks } from "../journal/read-assistant-blocks.ts";
import { isAgentId, isSessionId, sessionFiles } from "../journal/session-files.ts";
import { findDamage, type TranscriptDamage } from "../journal/transcript-damage.ts";
import { interruptedReason } from "../protocol/agent-state.ts";
import { loadChildMeta, loadQueueNumber, queueMarkFile } from "./child-meta.ts";
import { foldChildRun, isStopOwed } from "./child-run.ts";
import { foldTranscript, type TranscriptTask } from "./transcript-task.ts";

/** A child agent of any session of a project, as recorded in the files. */
export interface FoundTask extends Omit<TranscriptTask, "state"> {
  readonly id: string;
  readonly sessionId: string;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  readonly model?: string;
  /** Set while one that counts as running still waits for a place in its session: 1 is next. */
  readonly queuePosition?: number;
  /** Interrupted: its process ended before it did. */
  readonly state: "running" | NonNullable<TranscriptTask["state"]> | "interrupted";
  /** It ran in the background. */
  readonly background: boolean;
  /** The subagent that started it; absent for a child of the main agent. */
  readonly parentId?: string;
  /** Its level below the main agent; absent for a child of the main agent. */
  readonly depth?: number;
  /** The call that asked for it, when a model did. */
  readonly callId?: string;
  /** Its plan was written down; where it was not, another program wrote the transcript, and may not say how it ended. */
  readonly hasPlan: boolean;
  /** Of a running one: the call it waits for now. */
  readonly current?: InFlightCall;
  /** Of an interrupted one: the calls whose outcome is unknown. */
  readonly inFlight?: readonly InFlightCall[];
  /** Of an interrupted one: whether its task is known, so that it can be resumed. */
  readonly canResume?: boolean;
  /** Hooks were not notified of its stop yet. */
  readonly isStopOwed?: true;
  /** Of one that counts as running, but whose process cannot be seen from here: on which machine or in which container. */
  readonly runsOn?: string;
  /** What of its transcript cannot be read or is not there; absent when it is whole. */
  readonly damage?: TranscriptDamage;
  /** Milliseconds since 1970. */
  readonly lastSignAt: number;
  readonly transcript: string;
}

interface FindTasksOptions {
  /** Besides those that run, only so many, the newest first. */
  readonly limit?: number;
  /** Only those whose id begins so; the files of others are not read. */
  readonly idPrefix?: string;
  /** Only those of this session. */
  readonly sessionId?: string;
  /** Takes none for running: the caller is about to take them from the process that has them. */
  readonly takeOver?: boolean;
  /** Leaves those that ended by themselves out where this says so; only the end of their file is read then. */
  readonly isSettled?: (ended: Pick<FoundTask, "id" | "lastSignAt">) => boolean;
}

/** The children of all sessions of a project: those that run first, then the newest. */
export async function findTasks(
  transcripts: string,
  {
    limit = Number.POSITIVE_INFINITY,
    idPrefix = "",
    sessionId,
    takeOver = false,
    isSettled,
  }: FindTasksOptions = {},
): Promise<readonly FoundTask[]> {
  const files = (await listChildren(transcripts, sessionId)).filter(({ id }) => id.startsWith(idPrefix));
  const marked = files.map((file) => ({ ...file, isRunning: !takeOver && hasLiveOwner(file.transcript) }));
  const chosen = [
    ...marked.filter(({ isRunning }) => isRunning),
    ...marked.filter(({ isRunning }) => !isRunning).slice(0, limit),
  ];
  const found: FoundTask[] = [];
  for (const file of chosen) {
    const endedAt = isSettled === undefined || file.isRunning ? undefined : await findQuietEnd(file);
    const isLeftOut = endedAt !== undefined && isSettled?.({ id: file.id, lastSignAt: endedAt }) === true;
    if (!isLeftOut) found.push(...(await describe(file)));
  }
  // Numbers grow in the order of arrival; what people want to know is how many are before one.
  return found.map((task) => {
    if (task.queuePosition === undefined) return task;
    const number = task.queuePosition;
    const before = found.filter(
      ({ sessionId, queuePosition }) => sessionId === task.sessionId && (queuePosition ?? number) < number,
    );
    return { ...task, queuePosition: before.length + 1 };
  });
}

interface ChildFile {
  readonly id: string;
  readonly sessionId: string;
  readonly transcript: string;
  readonly meta: string;
  readonly modified: number;
}

/** Every child's files, newest first, without reading them. */
async function listChildren(transcripts: string, only: string | undefined): Promise<readonly ChildFile[]> {
  const names = only === undefined ? await readdir(transcripts).catch(() => []) : [only];
  const sessions = names.filter(isSessionId);
  const lists = await Promise.all(
    sessions.map(async (sessionId) => {
      const files = sessionFiles(transcripts, sessionId);
      const names = await readdir(files.subagents).catch(() => []);
      const ids = names.flatMap((name) => /^agent-(.+)\.jsonl$/.exec(name)?.[1] ?? []).filter(isAgentId);
      return Promise.all(ids.map((id) => statChild(join(files.subagents, `agent-${id}`), id, sessionId)));
    }),
  );
  return lists.flat(2).sort((a, b) => b.modified - a.modified || (a.id < b.id ? -1 : 1));
}

async function statChild(path: string, id: string, sessionId: string): Promise<readonly ChildFile[]> {
  const transcript = `${path}.jsonl`;
  const status = await stat(transcript).catch(() => undefined);
  if (status?.isFile() !== true) return [];
  return [{ id, sessionId, transcript, meta: `${path}.meta.json`, modified: status.mtimeMs }];
}

const tailBytes = 64 * 1024;

/**
 * The last sign of a child that ended by itself, where the end of its file shows it. Hooks were notified of its stop then: a process
 * that dies in between leaves the lock.
 */
async function findQuietEnd({ transcript }: ChildFile): Promise<number | undefined> {
  if (hasLockFile(transcript)) return undefined;
  const lines = await readLines(transcript, { maxBytes: tailBytes }).catch(() => undefined);
  if (lines === undefined || lines.torn) return undefined;
  const { state, reason, lastSignAt } = foldTranscript(lines.values);
  return state === undefined || reason === interruptedReason ? undefined : lastSignAt;
}

function optional<Name extends string>(name: Name, value: string | undefined): Partial<Record<Name, string>> {
  // The only key of the object is the one asked for.
  return value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, string>>);
}

type Standing = Pick<
  FoundTask,
  "state" | "queuePosition" | "current" | "inFlight" | "canResume" | "isStopOwed" | "runsOn"
>;

/** The mark of a process that died means nothing; with a living owner it says that the child has no place yet. */
function standingOf(
  { isRunning, transcript }: ChildFile & { readonly isRunning: boolean },
  { state: reported, reason }: TranscriptTask,
  records: readonly JsonRecord[],
): Standing {
  if (isRunning) {
    const number = loadQueueNumber(queueMarkFile(transcript));
    const current = foldChildRun(records).inFlight.at(-1);
    return {
      state: "running",
      current,
      queuePosition: number,
      ...optional("runsOn", unseenMachine(transcript)),
    };
  }
  const owed = isStopOwed(records) ? ({ isStopOwed: true } as const) : {};
  // The process that finds one cut off writes that down as its ending.
  if (reported !== undefined && reason !== interruptedReason) return { state: reported, ...owed };
  const { hasStarted, last, inFlight } = foldChildRun(records);
  return { state: "interrupted", inFlight, canResume: hasStarted || last?.prompt !== undefined, ...owed };
}

/** The last line of one that runs may just be being written. */
function damageOf(lines: ParsedLines, isRunning: boolean): Pick<FoundTask, "damage"> {
  const damage = findDamage(isRunning ? { ...lines, torn: false } : lines);
  return damage.broken + damage.missing + Number(damage.torn) === 0 ? {} : { damage };
}

function unseenMachine(transcript: string): string | undefined {
  const look = lookAtLock(transcript);
  return look.type === "held" && look.expiresInMs !== undefined ? look.by?.machine.split(" ")[0] : undefined;
}

/** A list must not fail for one of its entries; one that died before its first line never was. */
async function describe(file: ChildFile & { readonly isRunning: boolean }): Promise<readonly FoundTask[]> {
  const lines = await readLines(file.transcript).catch(() => undefined);
  if (lines === undefined || (lines.values.length === 0 && !file.isRunning)) return [];
  const meta = await loadChildMeta(file.meta);
  const task = foldTranscript(lines.values);
  const plan = readEarlierPlans(lines.values).at(-1);
  const { state: _state, ...reported } = task;
  return [
    {
      ...reported,
      id: file.id,
      sessionId: file.sessionId,
      agentType: meta?.agentType ?? plan?.agentType ?? "unknown",
      description: meta?.description ?? plan?.description ?? "",
      background: plan?.background ?? false,
      hasPlan: plan !== undefined,
      // The sidecar is written behind the plan, so after a crash it may be missing or of an earlier run.
      ...optional("parentId", plan?.parentId),
      ...(plan?.depth === undefined ? {} : { depth: plan.depth }),
      ...optional("callId", plan?.callId ?? meta?.toolUseId),
      ...optional("name", meta?.name ?? plan?.name),
      ...optional("model", meta?.model?.id ?? plan?.model?.id),
      ...standingOf(file, task, lines.values),
      ...damageOf(lines, file.isRunning),
      lastSignAt: reported.lastSignAt ?? file.modified,
      transcript: file.transcript,
    },
  ];
}

export interface EndedTask {
  readonly task: FoundTask;
  /** What it said last. */
  readonly text: string;
}

/** The last words of a conversation are in this much of its end. */
const readBytes = 1_000_000;

/** A child of a session that is in no process's memory any more, as its files show it. */
export async function findEndedTask(
  transcripts: string,
  { sessionId, id }: { readonly sessionId: string; readonly id: string },
): Promise<EndedTask | undefined> {
  if (!isAgentId(id)) return undefined;
  const found = await findTasks(transcripts, { sessionId, idPrefix: id }).catch(() => []);
  const task = found.find((one) => one.id === id);
  if (task === undefined) return undefined;
  const { values } = await readLines(task.transcript, { maxBytes: readBytes }).catch(() => ({ values: [] }));
  const texts = values.flatMap(({ type, message }) =>
    type === "assistant" && isRecord(message)
      ? readAssistantBlocks(message["content"]).flatMap((block) =>
          block.type === "text" ? [block.text] : [],
        )
      : [],
  );
  return { task, text: texts.at(-1) ?? "" };
}

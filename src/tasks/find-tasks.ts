import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isAgentId, isSessionId, sessionFiles } from "../journal/session-files.ts";
import { hasLiveOwner } from "../storage/owner-lock.ts";
import { readLines } from "../storage/read-lines.ts";
import { loadChildMeta } from "./load-child-meta.ts";
import { foldTranscript, type TranscriptTask } from "./transcript-task.ts";
import { loadQueueNumber, queueMarkFile } from "./write-queue-mark.ts";

/** A child agent of any session of a project, as the files tell it. */
export interface FoundTask extends Omit<TranscriptTask, "state"> {
  readonly id: string;
  readonly sessionId: string;
  readonly agentType: string;
  readonly description: string;
  readonly name?: string;
  readonly model?: string;
  /** Set while one that counts as running still waits for a place in its session: 1 is next. */
  readonly queuePosition?: number;
  readonly state: "running" | NonNullable<TranscriptTask["state"]> | "interrupted";
  /** Milliseconds since 1970. */
  readonly lastSignAt: number;
  readonly transcript: string;
}

export interface FindTasksOptions {
  /** Besides those that run, only so many, the newest first. */
  readonly limit?: number;
  /** Only those whose id begins so; the files of others are not read. */
  readonly idPrefix?: string;
}

/** The children of all sessions of a project: those that run first, then the newest. */
export async function findTasks(
  transcripts: string,
  { limit = Number.POSITIVE_INFINITY, idPrefix = "" }: FindTasksOptions = {},
): Promise<readonly FoundTask[]> {
  const files = (await listChildren(transcripts)).filter(({ id }) => id.startsWith(idPrefix));
  const marked = files.map((file) => ({ ...file, isRunning: hasLiveOwner(file.transcript) }));
  const chosen = [
    ...marked.filter(({ isRunning }) => isRunning),
    ...marked.filter(({ isRunning }) => !isRunning).slice(0, limit),
  ];
  const found: FoundTask[] = [];
  for (const file of chosen) found.push(...(await describe(file)));
  return withPositions(found);
}

/** Numbers grow in the order of arrival; what people want to know is how many are before one. */
function withPositions(found: readonly FoundTask[]): readonly FoundTask[] {
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
async function listChildren(transcripts: string): Promise<readonly ChildFile[]> {
  const sessions = (await readdir(transcripts).catch(() => [])).filter(isSessionId);
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

/** The mark of a process that died means nothing; with a living owner it says that the child has no place yet. */
function standingOf(
  { isRunning, transcript }: ChildFile & { readonly isRunning: boolean },
  told: TranscriptTask["state"],
): Pick<FoundTask, "state" | "queuePosition"> {
  if (!isRunning) return { state: told ?? "interrupted" };
  const number = loadQueueNumber(queueMarkFile(transcript));
  return { state: "running", ...(number === undefined ? {} : { queuePosition: number }) };
}

/** A list must not fail for one of its entries. */
async function describe(file: ChildFile & { readonly isRunning: boolean }): Promise<readonly FoundTask[]> {
  const lines = await readLines(file.transcript).catch(() => undefined);
  if (lines === undefined) return [];
  const meta = await loadChildMeta(file.meta);
  const { state, ...told } = foldTranscript(lines.values);
  return [
    {
      ...told,
      id: file.id,
      sessionId: file.sessionId,
      agentType: meta?.agentType ?? "unknown",
      description: meta?.description ?? "",
      ...(meta?.name === undefined ? {} : { name: meta.name }),
      ...(meta?.model === undefined ? {} : { model: meta.model.id }),
      ...standingOf(file, state),
      lastSignAt: told.lastSignAt ?? file.modified,
      transcript: file.transcript,
    },
  ];
}

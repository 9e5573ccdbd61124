import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import type { InFlightCall } from "../conversation/interrupted-agent.ts";
import { findSessions, type SessionSummary } from "../journal/find-sessions.ts";
import { rebuildConversation } from "../journal/rebuild-conversation.ts";
import { interruptedReason } from "../protocol/agent-state.ts";
import { describeInFlight } from "./child-run.ts";
import { type FoundTask, findTasks } from "./find-tasks.ts";
import { quotaWaitOf } from "./transcript-task.ts";

/** A main conversation whose process ended before its run did. */
interface InterruptedSession extends Pick<SessionSummary, "id" | "title" | "modified" | "file"> {
  readonly inFlight: readonly InFlightCall[];
  /** Set where it waited for a new quota when its process died; `until` in milliseconds since 1970. */
  readonly waitingForQuota?: { readonly provider: string; readonly until: number };
}

/** As much of the end of a transcript as shows how it ended; more only where one long line fills that. */
const tailBytes = [512 * 1024, 32 * 1024 * 1024];
const waitBytes = 64 * 1024;
const maxSessions = 100;

/** Among the newest sessions of a project. Those that other programs wrote do not say how they ended, and do not count. */
async function findInterruptedSessions(transcripts: string): Promise<readonly InterruptedSession[]> {
  const found: InterruptedSession[] = [];
  for (const { id, title, modified, file } of await findSessions(transcripts, { limit: maxSessions })) {
    if (hasLiveOwner(file)) continue;
    const records = await loadEnd(file).catch(() => []);
    if (!isCutOff(records)) continue;
    const { inFlight } = rebuildConversation(records);
    const waiting = quotaWaitOf(records);
    found.push({
      ...{ id, title, modified, file, inFlight: inFlight.map(describeInFlight) },
      ...(waiting === undefined ? {} : { waitingForQuota: waiting }),
    });
  }
  return found;
}

/** A main conversation that waits for a new quota. Times are milliseconds since 1970. */
export interface WaitingSession {
  readonly sessionId: string;
  readonly title: string;
  readonly provider: string;
  readonly until: number;
  /** A process has it open, and continues it by itself. */
  readonly isLive: boolean;
}

/** Among the newest sessions of a project. */
export async function findWaitingSessions(transcripts: string): Promise<readonly WaitingSession[]> {
  const found: WaitingSession[] = [];
  for (const { id: sessionId, title, file } of await findSessions(transcripts, { limit: maxSessions })) {
    // The wait is the last thing that was written.
    const lines = await readLines(file, { maxBytes: waitBytes }).catch(() => undefined);
    const waiting = quotaWaitOf(lines?.values ?? []);
    if (waiting !== undefined) found.push({ sessionId, title, ...waiting, isLive: hasLiveOwner(file) });
  }
  return found;
}

async function loadEnd(file: string): Promise<readonly JsonRecord[]> {
  let records: readonly JsonRecord[] = [];
  for (const maxBytes of tailBytes) {
    const { values, skippedBytes } = await readLines(file, { maxBytes });
    records = values;
    if (skippedBytes === 0 || records.some(isPartOfRun)) break;
  }
  return records;
}

function isPartOfRun({ type, runEnding }: JsonRecord): boolean {
  return type === "user" || type === "assistant" || runEnding !== undefined;
}

/** A signal that ended the process left the time to say so. */
function wasInterrupted(ending: unknown): boolean {
  return isRecord(ending) && ending.status === "stopped" && ending.reason === interruptedReason;
}

function isCutOff(records: readonly JsonRecord[]): boolean {
  const last = records.findLast(isPartOfRun);
  const isOurs = records.some(({ type }) => typeof type === "string" && type.startsWith("retinue-"));
  return isOurs && last !== undefined && (last.runEnding === undefined || wasInterrupted(last.runEnding));
}

/** Cut off for certain: what another program wrote may only not say how it ended. */
export function isInterrupted({ state, hasPlan }: FoundTask): boolean {
  return state === "interrupted" && hasPlan;
}

/** Everything in a project whose process died before it ended. */
export interface Interrupted {
  /** Child agents of any session, the newest first. */
  readonly agents: readonly FoundTask[];
  /** Main conversations. */
  readonly sessions: readonly InterruptedSession[];
}

export async function findInterrupted(transcripts: string): Promise<Interrupted> {
  const tasks = await findTasks(transcripts, { isSettled: () => true });
  return {
    agents: tasks.filter(isInterrupted),
    sessions: await findInterruptedSessions(transcripts),
  };
}

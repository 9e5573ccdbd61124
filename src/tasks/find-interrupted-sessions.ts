import type { InFlightCall } from "../conversation/interrupted-agent.ts";
import type { JsonRecord } from "../foundation/json-value.ts";
import { findSessions, type SessionSummary } from "../journal/find-sessions.ts";
import { rebuildConversation } from "../journal/rebuild.ts";
import { hasLiveOwner } from "../storage/owner-lock.ts";
import { readLines } from "../storage/read-lines.ts";
import { describeInFlight } from "./in-flight.ts";

/** A main conversation whose process ended before its run did. */
export interface InterruptedSession extends Pick<SessionSummary, "id" | "title" | "modified" | "file"> {
  readonly inFlight: readonly InFlightCall[];
}

/** As much of the end of a transcript as tells how it ended. */
const tailBytes = 512 * 1024;
const mostSessions = 100;

/** Among the newest sessions of a project. Those that other programs wrote do not say how they ended, and do not count. */
export async function findInterruptedSessions(transcripts: string): Promise<readonly InterruptedSession[]> {
  const found: InterruptedSession[] = [];
  for (const { id, title, modified, file } of await findSessions(transcripts, { limit: mostSessions })) {
    if (hasLiveOwner(file)) continue;
    const lines = await readLines(file, { maxBytes: tailBytes }).catch(() => undefined);
    if (lines === undefined || !isCutOff(lines.values)) continue;
    const { inFlight } = rebuildConversation(lines.values);
    found.push({ id, title, modified, file, inFlight: inFlight.map(describeInFlight) });
  }
  return found;
}

function isCutOff(records: readonly JsonRecord[]): boolean {
  const last = records.findLast(
    ({ type, runEnding }) => type === "user" || type === "assistant" || runEnding !== undefined,
  );
  const isOurs = records.some(({ type }) => typeof type === "string" && type.startsWith("retinue-"));
  return isOurs && last !== undefined && last.runEnding === undefined;
}

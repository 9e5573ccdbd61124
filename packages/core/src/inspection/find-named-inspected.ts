// @io

import { readdir } from "node:fs/promises";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { findLatestSession, findSession } from "../journal/find-sessions.ts";
import { isAgentId, isSessionId } from "../journal/session-files.ts";
import { findTasks } from "../tasks/find-tasks.ts";
import type { Inspection } from "./inspection.ts";
import { createInspectionSource } from "./inspection-source.ts";

/** Reads what was named, once; a RetinueError where nothing or too much is meant. */
export async function loadInspection({
  transcripts,
  written,
  now,
}: {
  readonly transcripts: string;
  readonly written?: string | undefined;
  readonly now: () => number;
}): Promise<Inspection> {
  const inspected = await findNamedInspected(transcripts, written);
  return createInspectionSource({ transcripts, ...inspected, now }).load();
}

export async function findNamedInspected(
  transcripts: string,
  written: string | undefined,
): Promise<Inspected> {
  const found = await findInspected(transcripts, written);
  if (found.type === "found") return found.inspected;
  if (written === undefined)
    throw new RetinueError("session-missing", "There are no sessions in this folder yet.", {
      advice: '`retinue -p "prompt"` starts one.',
    });
  const what = JSON.stringify(written);
  if (found.type === "ambiguous")
    throw new RetinueError("session-ambiguous", `${what} matches several sessions or agents.`, {
      advice: `Pass one of these, or a longer prefix of its id: ${found.ids.join(", ")}.`,
    });
  const near = found.nearest === undefined ? "" : ` Did you mean ${JSON.stringify(found.nearest)}?`;
  throw new RetinueError("session-missing", `There is no session or agent ${what} in this folder.${near}`, {
    advice: "`retinue inspect` shows the newest session, `retinue tasks --all` lists the agents of all.",
  });
}

/** What was asked for. */
interface Inspected {
  readonly sessionId: string;
  /** Absent for the whole session. */
  readonly agentId?: string;
}

type InspectedSearch =
  | { readonly type: "found"; readonly inspected: Inspected }
  | { readonly type: "ambiguous"; readonly ids: readonly string[] }
  | { readonly type: "missing"; readonly nearest?: string };

/**
 * The session or agent with this id, the beginning of it, or this title or name; without one, the session that was
 * written to last. A whole id counts before a beginning, and an id before a title.
 */
export async function findInspected(transcripts: string, written?: string): Promise<InspectedSearch> {
  if (written === undefined) {
    const latest = await findLatestSession(transcripts);
    return latest === undefined ? { type: "missing" } : found({ sessionId: latest.id });
  }
  const wanted = written.trim();
  const byId = await findByBeginning(transcripts, wanted);
  const exact = byId.find((inspected) => idOf(inspected) === wanted);
  if (exact !== undefined) return found(exact);
  if (byId.length > 0) return oneOf(byId);
  const named = isAgentId(wanted) ? (await findTasks(transcripts)).filter(({ name }) => name === wanted) : [];
  if (named.length > 0) return oneOf(named.map(({ sessionId, id }) => ({ sessionId, agentId: id })));
  const titled = await findSession(transcripts, wanted);
  if (titled.type === "found") return found({ sessionId: titled.session.id });
  return titled.type === "missing" ? titled : { type: "ambiguous", ids: titled.sessions.map(({ id }) => id) };
}

async function findByBeginning(transcripts: string, wanted: string): Promise<readonly Inspected[]> {
  if (!isAgentId(wanted)) return [];
  const names = await readdir(transcripts).catch(() => []);
  const sessions = names
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => name.slice(0, -".jsonl".length))
    .filter((id) => isSessionId(id) && id.toLowerCase().startsWith(wanted.toLowerCase()));
  const agents = await findTasks(transcripts, { idPrefix: wanted });
  return [
    ...sessions.map((sessionId) => ({ sessionId })),
    ...agents.map(({ sessionId, id }) => ({ sessionId, agentId: id })),
  ];
}

function oneOf(all: readonly Inspected[]): InspectedSearch {
  const [first, ...others] = all;
  if (first === undefined) return { type: "missing" };
  return others.length === 0 ? found(first) : { type: "ambiguous", ids: all.map(idOf) };
}

function found(inspected: Inspected): InspectedSearch {
  return { type: "found", inspected };
}

function idOf({ sessionId, agentId }: Inspected): string {
  return agentId ?? sessionId;
}

// @io
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { type ParsedLines, parseLines, readRange } from "@retinue/base/storage/read-lines.ts";
import { isSessionId } from "./session-files.ts";
import { bestTitle, isShownMessage, readSessionTitles } from "./session-title.ts";

/** A session as lists show it, made from the beginning and the end of its file. */
export interface SessionSummary {
  readonly id: string;
  readonly file: string;
  /** Given by a person, else by a model, else the first prompt. */
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly modified: number;
  readonly bytes: number;
  readonly messageCount: number;
  /** The count is reckoned from the parts that were read. */
  readonly isEstimate: boolean;
  /** The folder the session worked in, when the file names it. */
  readonly cwd?: string;
  readonly gitBranch?: string;
}

export type SessionSearch =
  | { readonly type: "found"; readonly session: SessionSummary }
  | { readonly type: "ambiguous"; readonly sessions: readonly SessionSummary[] }
  | { readonly type: "missing"; readonly nearest?: string };

export interface FindSessionsOptions {
  /** Looks at no more than so many files, the newest first. */
  readonly limit?: number;
}

/** The sessions of a project, newest first. Files without a message of the main conversation are not sessions. */
export async function findSessions(
  transcripts: string,
  { limit = 1000 }: FindSessionsOptions = {},
): Promise<readonly SessionSummary[]> {
  const sessions: SessionSummary[] = [];
  for (const file of (await listFiles(transcripts)).slice(0, limit)) {
    const session = await summarise(file);
    if (session !== undefined) sessions.push(session);
  }
  return sessions;
}

/** The session that was written to last. */
export async function findLatestSession(transcripts: string): Promise<SessionSummary | undefined> {
  for (const file of await listFiles(transcripts)) {
    const session = await summarise(file);
    if (session !== undefined) return session;
  }
  return undefined;
}

/**
 * The one session with this id or, whatever its case, this title; else the one whose id begins so, else the one whose title
 * contains it.
 */
export async function findSession(transcripts: string, idOrTitle: string): Promise<SessionSearch> {
  const wanted = idOrTitle.trim().toLowerCase();
  if (isSessionId(wanted)) {
    const file = (await listFiles(transcripts)).find(({ id }) => id.toLowerCase() === wanted);
    const session = file === undefined ? undefined : await summarise(file);
    return session === undefined ? { type: "missing" } : { type: "found", session };
  }
  const all = await findSessions(transcripts);
  const [first, ...others] = all.filter(({ title }) => title.toLowerCase() === wanted);
  if (first !== undefined)
    return others.length === 0
      ? { type: "found", session: first }
      : { type: "ambiguous", sessions: [first, ...others] };
  const byId = all.filter(({ id }) => wanted.length >= minIdPart && id.toLowerCase().startsWith(wanted));
  const alike = byId.length > 0 ? byId : all.filter(({ title }) => isPart(wanted, title));
  const [only, ...more] = alike;
  if (only !== undefined)
    return more.length === 0 ? { type: "found", session: only } : { type: "ambiguous", sessions: alike };
  const nearest = nearestName(
    wanted,
    all.map(({ title }) => title),
  );
  return { type: "missing", nearest };
}

/** Fewer digits of an id are more likely a word. */
const minIdPart = 4;

function isPart(wanted: string, title: string): boolean {
  return wanted !== "" && title.toLowerCase().includes(wanted);
}

interface SessionFile {
  readonly id: string;
  readonly file: string;
  readonly modified: number;
  readonly bytes: number;
}

async function listFiles(transcripts: string): Promise<readonly SessionFile[]> {
  const names = await readdir(transcripts).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return [];
    throw fileError("list", transcripts, error);
  });
  const ids = names.filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -6));
  const files = await Promise.all(ids.filter(isSessionId).map((id) => statFile(transcripts, id)));
  return files
    .filter((file) => file !== undefined)
    .sort((a, b) => b.modified - a.modified || (a.id < b.id ? -1 : 1));
}

async function statFile(transcripts: string, id: string): Promise<SessionFile | undefined> {
  const file = join(transcripts, `${id}.jsonl`);
  const status = await stat(file).catch(() => undefined);
  if (status?.isFile() !== true) return undefined;
  return { id, file, modified: status.mtimeMs, bytes: status.size };
}

const partBytes = 64 * 1024;
/** A first prompt may be long; a session with an even longer one goes without its title. */
const maxHeadBytes = 1024 * 1024;

/** Unreadable files are passed over: a list must not fail for one of its entries. */
async function summarise(file: SessionFile): Promise<SessionSummary | undefined> {
  const parts = await readParts(file).catch(() => undefined);
  if (parts === undefined) return undefined;
  const records = [...parts.head.values, ...parts.tail.values];
  // The lines of one answer are one message.
  const answers = new Set<unknown>();
  let shownLines = 0;
  for (const record of records.filter(isShownMessage)) {
    const id = record.type === "assistant" ? answerId(record) : undefined;
    if (id !== undefined && answers.has(id)) continue;
    answers.add(id);
    shownLines += 1;
  }
  if (shownLines === 0) return undefined;
  const title = bestTitle(readSessionTitles(records)) ?? "(no prompt)";
  const isEstimate = parts.readBytes < file.bytes;
  const messageCount = isEstimate ? Math.round((shownLines * file.bytes) / parts.readBytes) : shownLines;
  const context = records.findLast(({ cwd }) => typeof cwd === "string");
  return {
    ...file,
    title,
    messageCount,
    isEstimate,
    ...textField(context, "cwd"),
    ...textField(context, "gitBranch"),
  };
}

interface Parts {
  readonly head: ParsedLines;
  readonly tail: ParsedLines;
  readonly readBytes: number;
}

async function readParts({ file, bytes }: SessionFile): Promise<Parts> {
  await using handle = await open(file, "r");
  const read = async (headBytes: number): Promise<Parts> => {
    const headEnd = Math.min(bytes, headBytes);
    const tailStart = Math.max(headEnd, bytes - partBytes);
    const head = parseLines(await readRange(handle, 0, headEnd));
    const tail = parseLines(await readRange(handle, tailStart, bytes));
    return { head, tail, readBytes: headEnd + bytes - tailStart };
  };
  const parts = await read(partBytes);
  const isEnough = bytes <= partBytes || readSessionTitles(parts.head.values).firstPrompt !== undefined;
  return isEnough ? parts : await read(maxHeadBytes);
}

function answerId({ message }: JsonRecord): unknown {
  return typeof message === "object" && message !== null && "id" in message ? message.id : undefined;
}

function textField<Name extends "cwd" | "gitBranch">(
  record: JsonRecord | undefined,
  name: Name,
): Partial<Record<Name, string>> {
  const value = record?.[name];
  // The only key of the object is the one asked for.
  return typeof value === "string" ? ({ [name]: value } as Partial<Record<Name, string>>) : {};
}

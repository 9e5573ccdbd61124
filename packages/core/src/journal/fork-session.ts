import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { checkSessionId, sessionFiles } from "./session-files.ts";
import { bestTitle, readSessionTitles } from "./session-title.ts";
import { findDamage, type TranscriptDamage } from "./transcript-damage.ts";
import { customTitleLine } from "./transcript-facts.ts";
import type { IdSource } from "./transcript-writer.ts";

export interface ForkOptions {
  readonly transcripts: string;
  readonly from: string;
  readonly ids: IdSource;
  /** The id of the copy; a new one when absent. */
  readonly to?: string;
  readonly title?: string;
  /** Only up to this message: before a prompt, or after an answer with the results of its calls. */
  readonly at?: string;
}

export interface ForkedSession {
  readonly sessionId: string;
  readonly file: string;
  /** What of the old one could not be copied. */
  readonly damage: TranscriptDamage;
}

/** Copies a session under a new id, all concurrently; the old one may be in use. The files of its children stay with it. */
export async function forkSession({
  transcripts,
  from,
  ids,
  to,
  title,
  at,
}: ForkOptions): Promise<ForkedSession> {
  const source = sessionFiles(transcripts, from).transcript;
  const sessionId = checkSessionId(to ?? ids.uuid());
  const file = sessionFiles(transcripts, sessionId).transcript;
  const read = await readLines(source);
  const values = at === undefined ? read.values : recordsUpTo(read.values, at);
  const lines = forkLines(values, { from, to: sessionId, ids, title });
  if (lines.length === 1)
    throw new RetinueError("empty-session", `The session ${from} has no conversation to copy.`);
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  if (createWholeFile(file, text, { durable: true }) === "exists")
    throw new RetinueError(
      "session-exists",
      `The session ${sessionId} already exists, so nothing was copied into it.`,
      {
        advice: "Leave out the id of the copy, or choose another.",
      },
    );
  return { sessionId, file, damage: findDamage(read) };
}

/** The lines of a conversation up to a message; throws where there is no such message. */
export function recordsUpTo(records: readonly JsonRecord[], message: string): readonly JsonRecord[] {
  const at = records.findIndex(({ uuid, isSidechain }) => uuid === message && isSidechain !== true);
  const record = records[at];
  if (record === undefined)
    throw new RetinueError("unknown-message", `The conversation has no message ${JSON.stringify(message)}.`);
  if (record.type !== "assistant") return records.slice(0, at);
  const id = isRecord(record.message) ? record.message.id : undefined;
  const isPart = (other: JsonRecord): boolean =>
    other.type === "assistant" && isRecord(other.message) && other.message.id === id;
  const parts = records.filter(isPart);
  const calls = new Set<unknown>(
    parts.flatMap((part) => blocksOf(part).flatMap(({ id: call }) => call ?? [])),
  );
  const last = records.findLastIndex(
    (other) => isPart(other) || blocksOf(other).some(({ tool_use_id: call }) => calls.has(call)),
  );
  return records.slice(0, Math.max(at, last) + 1);
}

function blocksOf({ message }: JsonRecord): readonly JsonRecord[] {
  const content = isRecord(message) ? message.content : undefined;
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

interface ForkInput {
  readonly from: string;
  readonly to: string;
  readonly ids: IdSource;
  /** What the copy is called; the old title with a mark when absent. */
  readonly title?: string;
}

/** The lines of a copy: the main conversation under new ids, each line naming the one it comes from, and a title. */
export function forkLines(
  records: readonly JsonRecord[],
  { from, to, ids, title }: ForkInput,
): readonly object[] {
  const copied = records.filter((record) => typeof record.uuid === "string" && record.isSidechain !== true);
  const renewed = new Map<unknown, string>(copied.map(({ uuid }) => [uuid, ids.uuid()]));
  const renew = (uuid: unknown): unknown => renewed.get(uuid) ?? uuid;
  const lines = copied.map((record) => ({
    ...record,
    ...renewFields(record, renew),
    sessionId: to,
    forkedFrom: { sessionId: from, messageUuid: record.uuid },
  }));
  const given = title ?? `${bestTitle(readSessionTitles(records)) ?? from} (fork)`;
  // They go by the ids of calls, which a copy keeps.
  const beside = records.filter(({ type }) => type === "retinue-intents" || type === "retinue-outcome");
  return [...lines, ...beside.map((line) => ({ ...line, sessionId: to })), customTitleLine(to, given)];
}

const linkFields = ["uuid", "parentUuid", "logicalParentUuid", "sourceToolAssistantUUID", "leafUuid"];

function renewFields(record: JsonRecord, renew: (uuid: unknown) => unknown): JsonRecord {
  const links = linkFields.filter((name) => Object.hasOwn(record, name));
  const fields = Object.fromEntries(links.map((name) => [name, renew(record[name])]));
  const metadata = record.compactMetadata;
  const preserved = isRecord(metadata) ? metadata.preservedMessages : undefined;
  if (!isRecord(metadata) || !isRecord(preserved)) return fields;
  const uuids = Array.isArray(preserved.uuids) ? preserved.uuids.map(renew) : [];
  const preservedMessages = { ...preserved, anchorUuid: renew(preserved.anchorUuid), uuids };
  return { ...fields, compactMetadata: { ...metadata, preservedMessages } };
}

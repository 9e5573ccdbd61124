import { isRecord, type JsonRecord } from "../foundation/json-value.ts";
import type { IdSource } from "./id-source.ts";
import { bestTitle, readSessionTitles } from "./session-title.ts";
import { customTitleLine } from "./transcript-line.ts";

export interface ForkInput {
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

import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";

/** One line of the tree that a transcript is. Lines the model never sees are part of it, because others hang on them. */
export interface ChainLine {
  readonly type: "user" | "assistant" | "other";
  readonly uuid: string;
  readonly parentUuid: string | null | undefined;
  /** Shared by the lines of one answer. */
  readonly messageId: string | undefined;
  /** Counts the lines of the tree in the order of the file. */
  readonly position: number;
  readonly record: JsonRecord;
}

export interface Chain {
  /** From the start, or the last compaction, to the newest message. */
  readonly lines: readonly ChainLine[];
  /** All lines of the tree, other branches too, in the order of the file. */
  readonly tree: readonly ChainLine[];
  /** The line that the next one hangs on. */
  readonly leaf: string | undefined;
}

export interface ChainOptions {
  /** Reads a child's file, in which every line is marked as a side chain. */
  readonly sidechain?: boolean;
  /** Reads the branch that ends with this line instead of the newest message. */
  readonly until?: (record: JsonRecord) => boolean;
}

/** The branch of a transcript that ends with its newest message. */
export function selectChain(
  records: readonly JsonRecord[],
  { sidechain = false, until }: ChainOptions = {},
): Chain {
  const known = new Set<string>();
  const tree: ChainLine[] = [];
  for (const record of records) {
    const { uuid, parentUuid, type, message } = record;
    if (typeof uuid !== "string" || known.has(uuid) || (record.isSidechain === true) !== sidechain) continue;
    known.add(uuid);
    const isMessage = (type === "user" || type === "assistant") && isRecord(message);
    const id = isMessage && type === "assistant" ? message.id : undefined;
    tree.push({
      type: isMessage ? type : "other",
      uuid,
      parentUuid: typeof parentUuid === "string" || parentUuid === null ? parentUuid : undefined,
      messageId: typeof id === "string" ? id : undefined,
      position: tree.length,
      record,
    });
  }
  const wanted = until === undefined ? undefined : tree.findLast(({ record }) => until(record));
  const newest = wanted ?? tree.findLast(({ type }) => type !== "other");
  if (newest === undefined) return { lines: [], tree, leaf: undefined };
  const byUuid = new Map(tree.map((line) => [line.uuid, line]));
  if (wanted !== undefined) {
    const lines = walkBack(wanted, tree, { byUuid, moved: movedParents(tree, readPreserved(tree, byUuid)) });
    return { lines, tree, leaf: wanted.uuid };
  }
  const preserved = readPreserved(tree, byUuid);
  // There may be no messages since a compaction; then the newest lines are those that it kept.
  const last = newest.uuid === preserved?.anchor ? byUuid.get(preserved.kept.at(-1) ?? "") : undefined;
  const chain = walkBack(last ?? newest, tree, { byUuid, moved: movedParents(tree, preserved) });
  return { lines: withRestOfAnswers(chain, tree, byUuid), tree, leaf: lastDescendant(newest, tree) };
}

export function isCompactBoundary(record: JsonRecord): boolean {
  return record.type === "system" && record.subtype === "compact_boundary";
}

type ByUuid = ReadonlyMap<string, ChainLine>;

/** A parent that is not in the file was a broken line; the line before takes its place, so that no history is lost. */
function walkBack(
  newest: ChainLine,
  tree: readonly ChainLine[],
  { byUuid, moved }: { readonly byUuid: ByUuid; readonly moved: ReadonlyMap<string, string> },
): readonly ChainLine[] {
  const seen = new Set<string>();
  const chain: ChainLine[] = [];
  for (let line: ChainLine | undefined = newest; line !== undefined && !seen.has(line.uuid); ) {
    seen.add(line.uuid);
    chain.push(line);
    if (isCompactBoundary(line.record)) break;
    const parent: string | null | undefined = moved.get(line.uuid) ?? line.parentUuid;
    if (parent === null) break;
    line = byUuid.get(parent ?? "") ?? tree[line.position - 1];
  }
  return chain.reverse();
}

interface Preserved {
  readonly boundary: ChainLine;
  readonly anchor: string;
  readonly kept: readonly string[];
}

/** A compaction may keep some older lines word for word; they then follow the line it calls their anchor. */
function readPreserved(tree: readonly ChainLine[], byUuid: ByUuid): Preserved | undefined {
  const boundary = tree.findLast(({ record }) => isCompactBoundary(record));
  const metadata = boundary?.record.compactMetadata;
  const preserved = isRecord(metadata) ? metadata.preservedMessages : undefined;
  if (boundary === undefined || !isRecord(preserved) || !Array.isArray(preserved.uuids)) return undefined;
  const anchor = preserved.anchorUuid;
  const kept = preserved.uuids.filter((uuid): uuid is string => typeof uuid === "string" && byUuid.has(uuid));
  if (typeof anchor !== "string" || !byUuid.has(anchor) || kept.length === 0) return undefined;
  return { boundary, anchor, kept };
}

function movedParents(
  tree: readonly ChainLine[],
  preserved: Preserved | undefined,
): ReadonlyMap<string, string> {
  const parents = new Map<string, string>();
  const last = preserved?.kept.at(-1);
  if (preserved === undefined || last === undefined) return parents;
  for (const line of tree.slice(preserved.boundary.position))
    if (line.parentUuid === preserved.anchor) parents.set(line.uuid, last);
  preserved.kept.forEach((uuid, index) => {
    parents.set(uuid, preserved.kept[index - 1] ?? preserved.anchor);
  });
  return parents;
}

/** When calls ran side by side, lines of one answer can hang beside the branch instead of on it. */
function withRestOfAnswers(
  chain: readonly ChainLine[],
  tree: readonly ChainLine[],
  byUuid: ByUuid,
): readonly ChainLine[] {
  const included = new Set(chain.map(({ uuid }) => uuid));
  const rest = new Map<string, ChainLine[]>();
  for (const line of tree) {
    const { messageId, parentUuid } = line;
    if (messageId === undefined || included.has(line.uuid) || !included.has(parentUuid ?? "")) continue;
    if (byUuid.get(parentUuid ?? "")?.messageId !== messageId) continue;
    included.add(line.uuid);
    rest.set(messageId, [...(rest.get(messageId) ?? []), line]);
  }
  if (rest.size === 0) return chain;
  const lastOf = new Map(chain.map((line, index) => [line.messageId, index]));
  return chain.flatMap((line, index) => {
    const id = line.messageId;
    return id !== undefined && lastOf.get(id) === index ? [line, ...(rest.get(id) ?? [])] : [line];
  });
}

/** Lines such as the duration of a run follow the newest message. */
function lastDescendant(newest: ChainLine, tree: readonly ChainLine[]): string {
  let leaf = newest.uuid;
  for (const line of tree.slice(newest.position + 1)) if (line.parentUuid === leaf) leaf = line.uuid;
  return leaf;
}

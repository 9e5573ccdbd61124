import type { JsonRecord } from "../foundation/json-record.ts";
import { type ReadLinesOptions, readLines } from "../storage/read-lines.ts";
import {
  type RebuildOptions,
  type RebuiltConversation,
  rebuildConversation,
} from "./rebuild-conversation.ts";
import { findDamage, type TranscriptDamage } from "./transcript-damage.ts";

export interface LoadedSession extends RebuiltConversation {
  readonly records: readonly JsonRecord[];
  /** What `openAppendLog` takes as the expected length, so that nothing written meanwhile is overlooked. */
  readonly length: number;
  /** What of it could not be read or is not there. */
  readonly damage: TranscriptDamage;
}

/** Reads a transcript and makes its conversation again; throws a RetinueError only when the file cannot be read. */
export async function loadSession(
  file: string,
  options: ReadLinesOptions & RebuildOptions = {},
): Promise<LoadedSession> {
  const read = await readLines(file, options);
  const { values, length } = read;
  return { ...rebuildConversation(values, options), records: values, length, damage: findDamage(read) };
}

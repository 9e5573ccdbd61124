import type { JsonRecord } from "../foundation/json-value.ts";
import { type ReadLinesOptions, readLines } from "../storage/read-lines.ts";
import { type RebuildOptions, type RebuiltConversation, rebuildConversation } from "./rebuild.ts";

export interface LoadedSession extends RebuiltConversation {
  readonly records: readonly JsonRecord[];
  /** What `openAppendLog` takes as the expected length, so that nothing written meanwhile is overlooked. */
  readonly length: number;
  /** Lines that could not be read. */
  readonly broken: number;
  /** The last line was cut off. */
  readonly torn: boolean;
}

/** Reads a transcript and makes its conversation again; throws a Fault only when the file cannot be read. */
export async function loadSession(
  file: string,
  options: ReadLinesOptions & RebuildOptions = {},
): Promise<LoadedSession> {
  const { values, length, broken, torn } = await readLines(file, options);
  return { ...rebuildConversation(values, options), records: values, length, broken, torn };
}

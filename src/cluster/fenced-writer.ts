import { isConflict, type JsonValue, type Log } from "./store.ts";

/**
 * Appends to a log that this process believes to own. Appends that come while one is under way go out together with the
 * next. After a conflict every further append fails the same way: somebody else owns the log now.
 */
export interface FencedWriter {
  readonly lastSeq: number;
  /** The number of the first of these records, once they are stored. */
  append(records: readonly JsonValue[]): Promise<number>;
}

interface Waiting {
  readonly records: readonly JsonValue[];
  readonly resolve: (seq: number) => void;
  readonly reject: (error: unknown) => void;
}

export function createFencedWriter(log: Log, name: string, startSeq: number): FencedWriter {
  let lastSeq = startSeq;
  let waiting: Waiting[] = [];
  let isWriting = false;
  let refusal: unknown;

  const write = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        if (refusal !== undefined) throw refusal;
        const first = lastSeq + 1;
        lastSeq = await log.append(
          name,
          batch.flatMap(({ records }) => records),
          lastSeq,
        );
        let seq = first;
        for (const { records, resolve } of batch) {
          resolve(seq);
          seq += records.length;
        }
      } catch (error) {
        if (isConflict(error)) refusal = error;
        for (const { reject } of batch) reject(error);
      }
    }
    isWriting = false;
  };
  return {
    get lastSeq() {
      return lastSeq;
    },
    append(records) {
      return new Promise((resolve, reject) => {
        waiting.push({ records, resolve, reject });
        if (!isWriting) void write();
      });
    },
  };
}

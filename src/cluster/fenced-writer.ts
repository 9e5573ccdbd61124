import { type AppendOptions, isConflict, type JsonValue, type Log } from "./store.ts";

/**
 * Appends to a log that this process believes to own. Appends that come while one is under way go out together with the
 * next. After a conflict every further append fails the same way: somebody else owns the log now.
 */
export interface FencedWriter {
  readonly lastSeq: number;
  /** The number of the first of these records, once they are stored. */
  append(records: readonly JsonValue[], options?: AppendOptions): Promise<number>;
}

interface Waiting {
  readonly records: readonly JsonValue[];
  readonly relaxed: boolean;
  readonly resolve: (seq: number) => void;
  readonly reject: (error: unknown) => void;
}

export function createFencedWriter(log: Log, name: string, startSeq: number): FencedWriter {
  let lastSeq = startSeq;
  let waiting: Waiting[] = [];
  let isWriting = false;
  let refusal: unknown;
  /** What a crash of the server may have lost, after the last record that it cannot have lost. */
  let [safe, unsafe]: [JsonValue | undefined, readonly JsonValue[]] = [undefined, []];

  const store = async (records: readonly JsonValue[], relaxed: boolean): Promise<void> => {
    try {
      lastSeq = await log.append(name, records, lastSeq, { relaxed });
    } catch (error) {
      if (!isConflict(error) || unsafe.length === 0) throw error;
      const lost = await findLost(log, { name, lastSeq, safe, unsafe });
      if (lost === undefined) throw error;
      lastSeq = await log.append(name, [...lost, ...records], lastSeq - lost.length, { relaxed });
    }
    [safe, unsafe] = relaxed ? [safe, [...unsafe, ...records]] : [records.at(-1), []];
  };
  const write = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        if (refusal !== undefined) throw refusal;
        let seq = lastSeq + 1;
        const records = batch.flatMap((entry) => entry.records);
        await store(
          records,
          batch.every(({ relaxed }) => relaxed),
        );
        for (const entry of batch) {
          entry.resolve(seq);
          seq += entry.records.length;
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
    append(records, { relaxed = false } = {}) {
      return new Promise((resolve, reject) => {
        waiting.push({ records, relaxed, resolve, reject });
        if (!isWriting) void write();
      });
    },
  };
}

interface Tail {
  readonly name: string;
  readonly lastSeq: number;
  readonly safe: JsonValue | undefined;
  readonly unsafe: readonly JsonValue[];
}

/** The records at the end that the server has lost, if the log ends with one of ours; no one has written since, then. */
async function findLost(
  log: Log,
  { name, lastSeq, safe, unsafe }: Tail,
): Promise<readonly JsonValue[] | undefined> {
  const [last] = await log.read(name, -1);
  const missing = lastSeq - (last?.seq ?? 0);
  if (last === undefined || missing <= 0 || missing > unsafe.length) return undefined;
  const own = missing === unsafe.length ? safe : unsafe[unsafe.length - missing - 1];
  return JSON.stringify(own) === JSON.stringify(last.record) ? unsafe.slice(-missing) : undefined;
}

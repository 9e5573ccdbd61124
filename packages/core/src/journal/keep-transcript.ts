import { basename } from "node:path";
import { retryOnResourceLimit } from "@retinue/base/foundation/retry-on-resource-limit.ts";
import { type AppendLog, openAppendLog } from "@retinue/base/storage/append-log.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import { waitForOwner } from "@retinue/base/storage/owner-lock.ts";
import type { LoadedSession } from "./session-choices.ts";
import { describeDamage, type TranscriptDamage } from "./transcript-damage.ts";
import {
  createTranscriptWriter,
  type TranscriptWriter,
  type TranscriptWriterOptions,
} from "./transcript-writer.ts";

/** How transcripts are written. */
export interface Keeping {
  readonly durability: Durability;
  /** Takes files that another process holds. */
  readonly takeOver?: boolean;
  readonly signal: AbortSignal;
  /** Shows the person what went wrong beside the work. */
  readonly notice?: ((text: string) => void) | undefined;
}

interface KeepOptions extends Omit<TranscriptWriterOptions, "log" | "leaf" | "sources"> {
  /** The conversation so far; undefined for a file that must be new. */
  readonly loaded: Pick<LoadedSession, "length" | "leaf" | "sources"> | undefined;
  readonly keeping: Keeping;
  /** Takes the file also from a process that is idle. */
  readonly takesIdle?: boolean;
  /** Writes what comes first; where that fails, the file is given back. */
  readonly begin: (writer: TranscriptWriter) => void | Promise<void>;
}

/** Opens a transcript for writing; only one process may have it. Closing brings the rest to the disk and never rejects. */
export async function keepTranscript(
  file: string,
  { loaded, keeping, takesIdle = false, begin, ...options }: KeepOptions,
): Promise<{
  readonly writer: TranscriptWriter;
  readonly setIdle: AppendLog["setIdle"];
  readonly close: () => Promise<void>;
}> {
  const { durability } = keeping;
  const takeOver = keeping.takeOver === true || (takesIdle ? "idle" : false);
  const log = await retryOnResourceLimit(() =>
    openAppendLog(file, { expectLength: loaded?.length ?? 0, durability, takeOver }),
  );
  const writer = createTranscriptWriter({ ...options, log, leaf: loaded?.leaf, sources: loaded?.sources });
  try {
    await begin(writer);
  } catch (error) {
    log.close();
    throw error;
  }
  return { writer, setIdle: log.setIdle, close: () => closeLog(log, keeping) };
}

/** Nothing of a conversation is left out without a word. */
export function reportDamage(
  name: string | undefined,
  damage: TranscriptDamage | undefined,
  { notice }: Pick<Keeping, "notice">,
): void {
  const text = name === undefined || damage === undefined ? undefined : describeDamage(name, damage);
  if (text !== undefined) notice?.(text);
}

/** The conversation already answers calls that a crash cut off; now the file does so too. */
export function writeUnrecorded(
  writer: Pick<TranscriptWriter, "record">,
  { unrecorded }: Pick<LoadedSession, "unrecorded">,
): void {
  if (unrecorded.length === 0) return;
  const message = { role: "user", content: unrecorded } as const;
  writer.record({ type: "user-added", message, origin: "tool-results" });
}

/** A session that was left on another machine or in another container is free when its owner has been silent long enough. */
export async function waitForFile(
  file: string,
  { takeOver, signal, notice }: Omit<Keeping, "durability">,
): Promise<void> {
  if (takeOver === true) return;
  await waitForOwner(file, {
    signal,
    onWait({ by, maxMs }) {
      const who = by === undefined ? "another process" : `process ${by.pid} on ${by.machine.split(" ")[0]}`;
      const seconds = Math.ceil(maxMs / 1000);
      notice?.(
        `${basename(file)} is held by ${who}, which cannot be seen from here. Waiting up to ${seconds} s for a sign of life; --take-over takes it immediately.`,
      );
    },
  });
}

/** The last lines reach the disk before anybody hears that the work is over. */
async function closeLog(log: AppendLog, { notice }: Pick<Keeping, "notice">): Promise<void> {
  try {
    await log.sync();
  } catch (error) {
    notice?.(error instanceof Error ? error.message : String(error));
  } finally {
    log.close();
  }
}

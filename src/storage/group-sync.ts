import { close, fdatasync, fsync, open } from "node:fs";
import { promisify } from "node:util";
import { retryWhileScarce } from "../foundation/retry-while-scarce.ts";
import { fileError } from "./file-error.ts";

/** Brings the bytes of a growing file onto the disk. */
export interface GroupSync {
  /** Resolves when the first `length` bytes are on the disk. Rejects with a RetinueError, and does so from then on. */
  upTo(length: number): Promise<void>;
  /** Why the disk did not take the bytes; nothing may be written after that. */
  failure(): Error | undefined;
  /**
   * Runs something immediately, or behind the syncs that are under way: the number of a descriptor that is closed is given to
   * another file, which they would take for this one.
   */
  whenIdle(run: () => void): void;
}

export interface GroupSyncOptions {
  readonly file: string;
  readonly descriptor: number;
  /** Bytes that are in the file now. */
  readonly length: () => number;
  /** Folders whose entries are new, innermost first; they are synced once, behind the file. */
  readonly newIn: readonly string[];
  /** How the data of a file is brought to the disk; `fdatasync` when absent. */
  readonly dataSync?: (descriptor: number) => Promise<void>;
}

/** The one that asks while a sync runs waits for the next one, and all who wait share it. */
export function createGroupSync(options: GroupSyncOptions): GroupSync {
  const { file, descriptor, length, newIn, dataSync = fileDataSync } = options;
  let synced = 0;
  let failed: Error | undefined;
  let areFoldersSynced = newIn.length === 0;
  let running: { readonly work: Promise<void>; readonly covers: number } | undefined;
  let next: Promise<void> | undefined;

  async function sync(covered: number): Promise<void> {
    try {
      await dataSync(descriptor);
      if (!areFoldersSynced) for (const folder of newIn) await syncDirectory(folder);
      areFoldersSynced = true;
      synced = Math.max(synced, covered);
    } catch (error) {
      // The system may have dropped the bytes, so another try would wrongly succeed.
      failed ??= fileError("bring to the disk", file, error);
      throw failed;
    }
  }

  function start(): Promise<void> {
    const covers = length();
    const work = sync(covers).finally(() => {
      if (running?.work === work) running = undefined;
    });
    running = { work, covers };
    return work;
  }

  return {
    async upTo(wanted) {
      if (failed !== undefined) throw failed;
      if (synced >= wanted && areFoldersSynced) return;
      if (running === undefined) return start();
      if (running.covers >= wanted) return running.work;
      next ??= running.work
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
    failure: () => failed,
    whenIdle(run) {
      const last = next ?? running?.work;
      if (last === undefined) run();
      else last.then(run, run);
    },
  };
}

const fileDataSync = promisify(fdatasync);
const fullSync = promisify(fsync);
const openFile = promisify(open);
const closeFile = promisify(close);

/** Makes the names in a folder survive a power cut; systems that cannot sync a folder do it by themselves. */
export async function syncDirectory(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const descriptor = await retryWhileScarce(() => openFile(folder, "r"));
  try {
    await fullSync(descriptor);
  } finally {
    await closeFile(descriptor);
  }
}

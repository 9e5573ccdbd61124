// @io
import { type FSWatcher, watch } from "node:fs";

export interface WatchedFolder {
  readonly path: string;
  /** Whether a change of this file counts; by default every change does. */
  readonly concerns?: (name: string) => boolean;
}

/** Watches folders, also those that appear later: after each change the missing ones are tried again. */
export interface FolderWatch {
  /** Watches more folders; those that are watched already stay as they are. */
  add(folders: readonly WatchedFolder[]): void;
  close(): void;
}

export function watchFolders(folders: readonly WatchedFolder[], onChange: () => void): FolderWatch {
  const wanted = new Map(folders.map((folder) => [folder.path, folder]));
  const watchers = new Map<string, FSWatcher>();

  function drop(path: string): void {
    watchers.get(path)?.close();
    watchers.delete(path);
  }

  function attach({ path, concerns }: WatchedFolder): boolean {
    if (watchers.has(path)) return false;
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        // A folder that was removed reports nothing more; the next change tries it again.
        if (name !== null && concerns?.(name) === false) return;
        attachAll();
        onChange();
      });
      watcher.on("error", () => drop(path));
      watchers.set(path, watcher);
      return true;
    } catch {
      return false;
    }
  }

  function attachAll(): void {
    for (const folder of wanted.values()) if (attach(folder)) onChange();
  }

  for (const folder of wanted.values()) attach(folder);
  return {
    add(more) {
      for (const folder of more) {
        if (wanted.has(folder.path)) continue;
        wanted.set(folder.path, folder);
        attach(folder);
      }
    },
    close() {
      wanted.clear();
      for (const path of [...watchers.keys()]) drop(path);
    },
  };
}

/** Runs a piece of work after changes, never twice at a time, and not more than about a fifth of the time. */
export interface Refresher {
  /** Something has changed: the work runs soon, and once more if it runs already. */
  request(): void;
  close(): void;
}

/** Several writes of one step come together. */
const settleMs = 15;
/** Of the time that the work took, so that it takes at most a fifth of all time. */
const restShare = 4;

export function createRefresher(
  work: () => Promise<void>,
  onError: (error: unknown) => void,
  leastMs = settleMs,
): Refresher {
  let timer: NodeJS.Timeout | undefined;
  let isRunning = false;
  let isWanted = false;
  let isClosed = false;
  let restUntil = 0;

  async function run(): Promise<void> {
    timer = undefined;
    isRunning = true;
    isWanted = false;
    const start = performance.now();
    await work().catch(onError);
    const end = performance.now();
    restUntil = end + Math.max(leastMs, restShare * (end - start));
    isRunning = false;
    if (isWanted) plan();
  }

  function plan(): void {
    if (isClosed || timer !== undefined) return;
    // After a quiet time a change is looked at soon; of many that follow each other several are taken together.
    timer = setTimeout(() => void run(), Math.max(leastMs, restUntil - performance.now()));
    timer.unref();
  }

  return {
    request() {
      isWanted = true;
      if (!isRunning) plan();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

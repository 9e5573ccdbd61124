// @io
import { type FSWatcher, watch } from "node:fs";
import { RetinueError } from "../../foundation/retinue-error.ts";

/** Waits for changes in a folder; the operating system tells of them, nothing is polled. */
export interface FolderWatch extends Disposable {
  /** Resolves with the next change after this call. Rejects when the folder cannot be watched any more. */
  changed(): Promise<void>;
}

/** The folder must be there. Watches while somebody waits. */
export function watchFolder(directory: string): FolderWatch {
  let next = Promise.withResolvers<void>();
  let watcher: FSWatcher | undefined;
  // A rejection that nobody waits for is no error.
  next.promise.catch(() => undefined);
  const fail = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error);
    next.reject(
      new RetinueError("cannot-watch", `The approvals in ${directory} cannot be watched: ${why}.`, {
        advice: "On Linux, raise fs.inotify.max_user_watches or max_user_instances.",
        cause: error,
      }),
    );
  };
  return {
    changed() {
      if (watcher === undefined) {
        try {
          watcher = watch(directory, () => {
            const reached = next;
            next = Promise.withResolvers<void>();
            next.promise.catch(() => undefined);
            reached.resolve();
          });
          watcher.on("error", fail);
        } catch (error) {
          fail(error);
        }
      }
      return next.promise;
    },
    [Symbol.dispose]() {
      watcher?.close();
      watcher = undefined;
    },
  };
}

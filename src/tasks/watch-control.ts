// @io
import {
  closeSync,
  constants,
  type FSWatcher,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  watch,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { agentOfRequest, type ControlFiles, isStopRequest } from "./control-files.ts";
import type { TaskManager } from "./task-manager.ts";

/** Some file systems report changes to no one, so the folder is also looked at this often. */
const pollMs = 500;
const maxRequest = 4096;

/** The same manager, whose children other processes of the same user can stop; looks only while children run. */
export function watchControl(tasks: TaskManager, files: ControlFiles): TaskManager {
  const running = new Set<symbol>();
  let stopLooking: (() => void) | undefined;

  async function look(): Promise<void> {
    const names = await readdir(files.directory).catch(() => []);
    for (const name of names) {
      const agentId = agentOfRequest(name);
      if (agentId === undefined) continue;
      const isWanted = isOwnRequest(join(files.directory, name));
      rmSync(join(files.directory, name), { force: true, recursive: true });
      if (isWanted) void tasks.stop(agentId, "user");
    }
  }

  function leave(mark: symbol): void {
    running.delete(mark);
    if (running.size > 0) return;
    stopLooking?.();
    stopLooking = undefined;
  }

  return {
    ...tasks,
    start(run) {
      // A wish that no one took in time was for an earlier run.
      rmSync(files.request(run.start.id), { force: true, recursive: true });
      const started = tasks.start(run);
      if (started.type === "refused") return started;
      const mark = Symbol(run.start.id);
      running.add(mark);
      stopLooking ??= startLooking(files.directory, () => void look().catch(() => undefined));
      void tasks.ended(run.start.id).then(() => leave(mark));
      return started;
    },
  };
}

function startLooking(directory: string, look: () => void): () => void {
  const timer = setInterval(look, pollMs).unref();
  let watcher: FSWatcher | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    watcher = watch(directory, { persistent: false }, look);
    // Without it the timer still looks.
    watcher.on("error", () => undefined);
  } catch {
    // The system may have no more watchers to give.
  }
  return () => {
    clearInterval(timer);
    watcher?.close();
  };
}

/** A plain file of this user that no one else may write. */
function isOwnRequest(file: string): boolean {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(
      file,
      constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
    );
    const status = fstatSync(descriptor);
    const isOurs = process.getuid === undefined || status.uid === process.getuid();
    const isPrivate = process.getuid === undefined || (status.mode & 0o022) === 0;
    if (!status.isFile() || !isOurs || !isPrivate || status.size > maxRequest) return false;
    return isStopRequest(readFileSync(descriptor, "utf8"));
  } catch {
    return false;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

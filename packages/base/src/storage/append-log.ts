import {
  close,
  closeSync,
  existsSync,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  mkdirSync,
  open,
  openSync,
  readSync,
  type Stats,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { errorCode, fileError } from "../foundation/file-error.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { retryOnResourceLimit } from "../foundation/retry-on-resource-limit.ts";
import type { Durability } from "./durability.ts";
import {
  fenceFile,
  type LockAnswer,
  type OwnerLock,
  type OwnerLockOptions,
  takeOwnerLock,
} from "./owner-lock.ts";

interface AppendLogOptions extends OwnerLockOptions, Pick<GroupSyncOptions, "dataSync"> {
  /** The length the file must have, in bytes: that of the text the caller has read, 0 for a file that must be new. */
  readonly expectLength?: number;
  /** What `sync` waits for; `os` when absent. */
  readonly durability?: Durability;
}

/** A file of lines that only grows, with this process as its only writer until it is closed. */
export interface AppendLog extends Disposable {
  readonly file: string;
  /** Bytes in the file. */
  readonly length: number;
  /** The last line had no end, as after a crash, and was given one when the file was opened. */
  readonly repaired: boolean;
  /** Writes whole lines and returns when the system has them; all of them or, with a RetinueError, none. Gives the length of the file. */
  append(lines: readonly string[]): number;
  /**
   * Resolves when the first so many bytes, by default all, would survive a power cut, as far as the durability asks for it,
   * and the file is still this process's own. Rejects with a RetinueError where that is not so.
   */
  sync(length?: number): Promise<void>;
  /** Says to other processes whether this one has nothing to write just now, so that one of them may take the file. */
  setIdle(isIdle: boolean): void;
  close(): void;
}

/** Opens a file for appending, making it and its folder where they are missing; refuses a file another process writes. */
export function openAppendLog(file: string, options: AppendLogOptions = {}): AppendLog {
  const newFolders = makeFolder(file);
  const answer = takeOwnerLock(file, options);
  if (answer.type === "held") throw inUse(file, answer);
  try {
    const { takenFrom } = answer.lock;
    if (takenFrom === "expired" || takenFrom === "forced") fenceFile(file);
    return openOwnedLog(file, answer.lock, { ...options, newFolders });
  } catch (error) {
    answer.lock.release();
    throw error;
  }
}

/** Gives the folders that hold a new folder, which must be synced for its name to last, innermost first. */
function makeFolder(file: string): readonly string[] {
  try {
    const first = mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const holders: string[] = [];
    if (first === undefined) return holders;
    for (let folder = dirname(file); folder.length >= first.length; folder = dirname(folder))
      holders.push(dirname(folder));
    return holders;
  } catch (error) {
    throw fileError("create the folder of", file, causeOf(dirname(file), error));
  }
}

/** Node says ENOENT of a folder with its parents where the disk is read-only; the first missing one alone says why. */
function causeOf(folder: string, error: unknown): unknown {
  if (errorCode(error) !== "ENOENT" || existsSync(folder)) return error;
  const parent = dirname(folder);
  if (parent !== folder && !existsSync(parent)) return causeOf(parent, error);
  try {
    mkdirSync(folder, { mode: 0o700 });
    return error;
  } catch (cause) {
    return cause;
  }
}

interface OpenOptions extends AppendLogOptions {
  readonly newFolders: readonly string[];
}

function openOwnedLog(
  file: string,
  lock: OwnerLock,
  { expectLength, durability = "os", newFolders, ...options }: OpenOptions,
): AppendLog {
  const descriptor = openFile(file);
  try {
    const status = statusOf(descriptor, file);
    if (expectLength !== undefined && status.size !== expectLength)
      throw changed(file, expectLength, status.size);
    const isTorn = endsInsideLine(descriptor, status.size);
    const length = isTorn
      ? status.size + writeWhole({ descriptor, file, bytes: lineEnd, before: status.size })
      : status.size;
    const newIn = [...(status.size === 0 ? [dirname(file)] : []), ...newFolders];
    const hadName = status.nlink > 0;
    return createLog({
      file,
      lock,
      descriptor,
      length,
      repaired: isTorn,
      hadName,
      durability,
      newIn,
      dataSync: options.dataSync,
    });
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

interface OpenFile extends Omit<GroupSyncOptions, "length"> {
  readonly lock: OwnerLock;
  readonly length: number;
  readonly repaired: boolean;
  /** Some file systems count no names; there, a removed file cannot be noticed. */
  readonly hadName: boolean;
  readonly durability: Durability;
}

function createLog(open: OpenFile): AppendLog {
  const { file, lock, descriptor, repaired, durability } = open;
  let length = open.length;
  let isClosed = false;
  const group = createGroupSync({ ...open, length: () => length });
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    group.whenIdle(() => closeSync(descriptor));
    lock.release();
  };
  const append = (lines: readonly string[]): number => {
    if (isClosed)
      throw new RetinueError("log-closed", `${file} was closed before this could be written to it.`);
    const failure = group.failure();
    if (failure !== undefined) throw failure;
    if (lines.length === 0) return length;
    const before = ownStatus(open);
    // Programs that know nothing of the lock may add a line, such as a title; theirs must not run into ours.
    const start = before.size !== length && endsInsideLine(descriptor, before.size) ? "\n" : "";
    const bytes = Buffer.from(`${start}${joinLines(lines, file)}`);
    length = before.size + writeWhole({ descriptor, file, bytes, before: before.size });
    return length;
  };
  return {
    file,
    repaired,
    get length() {
      return length;
    },
    append,
    async sync(wanted = length) {
      if (isClosed) return;
      if (durability === "sync") await group.upTo(wanted);
      // The process that has taken the file over meanwhile does not have what was written last.
      if (!isClosed) ownStatus(open);
    },
    setIdle: (isIdle) => {
      if (!isClosed) lock.setIdle(isIdle);
    },
    close,
    [Symbol.dispose]: close,
  };
}

/** The state of the file, as long as it is this process's own. */
function ownStatus({ file, lock, descriptor, hadName }: OpenFile): Stats {
  // Removing the folder of the file removes its lock as well.
  if (!lock.isHeld()) throw existsSync(file) ? takenOver(file) : removed(file);
  const status = statusOf(descriptor, file);
  if (hadName && status.nlink === 0) throw removed(file);
  return status;
}

const lineEnd = Buffer.from("\n");

function joinLines(lines: readonly string[], file: string): string {
  if (lines.some((line) => line.includes("\n")))
    throw new RetinueError(
      "line-break-in-line",
      `A line for ${file} contains a line break and would be read as two.`,
    );
  return `${lines.join("\n")}\n`;
}

function openFile(file: string): number {
  try {
    return openSync(file, "a+", 0o600);
  } catch (error) {
    throw fileError("open", file, error);
  }
}

function statusOf(descriptor: number, file: string): Stats {
  const status = fstatSync(descriptor);
  if (!status.isFile())
    throw new RetinueError("not-a-file", `${file} is not a regular file, so nothing can be stored in it.`, {
      advice: "Move it out of the way.",
    });
  return status;
}

function endsInsideLine(descriptor: number, size: number): boolean {
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  return readSync(descriptor, last, 0, 1, size - 1) === 1 && last[0] !== lineEnd[0];
}

/** A write that fails half way is taken back, so that the file never holds a part of a line for good. */
function writeWhole(write: {
  readonly descriptor: number;
  readonly file: string;
  readonly bytes: Buffer;
  readonly before: number;
}): number {
  const { descriptor, file, bytes, before } = write;
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at);
    return bytes.length;
  } catch (error) {
    try {
      ftruncateSync(descriptor, before);
    } catch {
      // The next append finds the half line by the length and ends it.
    }
    throw fileError("write to", file, error);
  }
}

function inUse(file: string, answer: Extract<LockAnswer, { type: "held" }>): RetinueError {
  const who =
    answer.by === undefined
      ? "another process"
      : `process ${answer.by.pid} on ${answer.by.machine.split(" ")[0]}`;
  const isUnseen = answer.expiresInMs !== undefined;
  const seconds = Math.ceil((answer.expiresInMs ?? 0) / 1000);
  return new RetinueError(
    "file-in-use",
    `${file} is being written by ${who}, and only one process may do that at a time.`,
    {
      advice: isUnseen
        ? `From here it cannot be checked whether that process still runs. Without a heartbeat it loses the file in ${seconds} s; \`--take-over\` takes it immediately.`
        : "End that one first, continue in a copy of the session (`--fork-session`), or take it over with `--take-over`.",
    },
  );
}

function takenOver(file: string): RetinueError {
  return new RetinueError(
    "file-taken-over",
    `Another process has taken over ${file}, so this one stops writing to it.`,
    {
      advice:
        "The other process writes the session from now on; continue there, or resume the session here later.",
    },
  );
}

function changed(file: string, expected: number, found: number): RetinueError {
  return new RetinueError(
    "file-changed",
    `${file} has ${found} bytes, not ${expected}: it was changed after it was read.`,
    {
      advice: "Read it again, then continue from there.",
    },
  );
}

function removed(file: string): RetinueError {
  return new RetinueError(
    "file-removed",
    `${file} was removed or replaced while this process was writing to it.`,
    {
      advice: "Start a new session; the conversation so far is still in memory but no longer on disk.",
    },
  );
}

/** Brings the bytes of a growing file onto the disk. */
interface GroupSync {
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

interface GroupSyncOptions {
  readonly file: string;
  readonly descriptor: number;
  /** Bytes that are in the file now. */
  readonly length: () => number;
  /** Folders whose entries are new, innermost first; they are synced once, behind the file. */
  readonly newIn: readonly string[];
  /** How the data of a file is brought to the disk; `fdatasync` when absent. */
  readonly dataSync?: (descriptor: number) => Promise<void>;
}

/** A caller that asks while a sync runs waits for the next one, and all who wait share it. */
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
const openFolder = promisify(open);
const closeFolder = promisify(close);

/**
 * Makes the names in a folder survive a power cut. Files that are new in one folder at the same time share a sync, because each of them
 * costs three turns of the thread pool and one of the disk.
 */
const syncDirectory = createSharedWork(syncFolderNow);

/**
 * Work whose every run does for all who asked before it began. A caller that asks while it runs waits for the next run, which all who ask
 * meanwhile share.
 */
export function createSharedWork(run: (key: string) => Promise<void>): (key: string) => Promise<void> {
  const running = new Map<string, { readonly work: Promise<void>; next?: Promise<void> }>();
  function begin(key: string): Promise<void> {
    const work = run(key).finally(() => {
      if (running.get(key)?.work === work) running.delete(key);
    });
    running.set(key, { work });
    return work;
  }
  return (key) => {
    const now = running.get(key);
    if (now === undefined) return begin(key);
    now.next ??= now.work.catch(() => undefined).then(() => begin(key));
    return now.next;
  };
}

/** Systems that cannot sync a folder do it by themselves. */
async function syncFolderNow(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const descriptor = await retryOnResourceLimit(() => openFolder(folder, "r"));
  try {
    await fullSync(descriptor);
  } finally {
    await closeFolder(descriptor);
  }
}

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { isRecord } from "../foundation/json-value.ts";
import { createWholeFile, replaceWholeFile } from "./create-whole-file.ts";
import { errorCode, fileError } from "./file-error.ts";
import { isOnThisMachine, isRunning, type ProcessIdentity, thisProcess } from "./process-identity.ts";

export interface OwnerLock {
  release(): void;
}

/** `by` is absent when the holder cannot be named. */
export type LockAnswer =
  | { readonly type: "taken"; readonly lock: OwnerLock }
  | { readonly type: "held"; readonly lockFile: string; readonly by?: ProcessIdentity };

export interface OwnerLockOptions {
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Makes this process the only writer of a file, by a lock file beside it. A lock whose process is gone is taken over. */
export function takeOwnerLock(file: string, options: OwnerLockOptions = {}): LockAnswer {
  return takeLock(`${file}.lock`, file, options.now ?? Date.now, 0);
}

/** Whether some process that still runs writes the file; a lock that cannot be read, as another user's, counts as held. */
export function hasLiveOwner(file: string, options: OwnerLockOptions = {}): boolean {
  try {
    const holder = readHolder(`${file}.lock`);
    return holder !== undefined && isLive(holder, file, (options.now ?? Date.now)());
  } catch {
    return true;
  }
}

/** Whether there is a lock, also one that a dead process left. */
export function hasLockFile(file: string): boolean {
  return existsSync(`${file}.lock`);
}

interface Holder {
  readonly text: string;
  readonly modified: number;
  readonly owner: ProcessIdentity | undefined;
}

const attempts = 5;
const deepestTakeover = 3;
/** A lock without a readable owner is one that is being written, for this long. */
const unreadablePatienceMs = 10_000;
/** Nobody can ask another machine whether a process runs; a lock and a file that rest this long count as left behind. */
const otherMachinePatienceMs = 15 * 60_000;

/**
 * Who replaces a lock left behind must first hold the lock of that lock and find it unchanged, so that of several who
 * see the same dead owner exactly one takes over.
 */
function takeLock(lockFile: string, file: string, now: () => number, depth: number): LockAnswer {
  const token = randomBytes(9).toString("hex");
  const text = JSON.stringify({ ...thisProcess(), token });
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    if (createWholeFile(lockFile, text) === "created") return taken(lockFile, text);
    const holder = readHolder(lockFile);
    if (holder === undefined) continue;
    if (depth === deepestTakeover || isLive(holder, file, now())) return held(lockFile, holder);
    const guard = takeLock(`${lockFile}.lock`, lockFile, now, depth + 1);
    if (guard.type === "held") return guard;
    try {
      if (readHolder(lockFile)?.text !== holder.text) continue;
      replaceWholeFile(lockFile, text);
      return taken(lockFile, text);
    } finally {
      guard.lock.release();
    }
  }
  return { type: "held", lockFile };
}

function taken(lockFile: string, text: string): LockAnswer {
  const release = () => {
    if (readHolder(lockFile)?.text === text) rmSync(lockFile, { force: true });
  };
  return { type: "taken", lock: { release } };
}

function held(lockFile: string, { owner }: Holder): LockAnswer {
  return { type: "held", lockFile, ...(owner === undefined ? {} : { by: owner }) };
}

function isLive({ owner, modified }: Holder, file: string, now: number): boolean {
  if (owner === undefined) return now - modified < unreadablePatienceMs;
  if (isOnThisMachine(owner)) return isRunning(owner);
  const written = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return now - Math.max(modified, written) < otherMachinePatienceMs;
}

function readHolder(lockFile: string): Holder | undefined {
  try {
    const text = readFileSync(lockFile, "utf8");
    return { text, modified: statSync(lockFile).mtimeMs, owner: readOwner(text) };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw fileError("read", lockFile, error);
  }
}

function readOwner(text: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value)) return undefined;
    const { pid, machine, started } = value;
    const isOwner = typeof pid === "number" && Number.isSafeInteger(pid) && pid > 0;
    if (!isOwner || typeof machine !== "string" || typeof started !== "string") return undefined;
    return { pid, machine, started };
  } catch {
    return undefined;
  }
}

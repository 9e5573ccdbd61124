// @io
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { sleep } from "../foundation/abortable.ts";
import { errorCode, fileError } from "../foundation/file-error.ts";
import { isRecord } from "../foundation/json-record.ts";
import { removeIfPossible } from "../foundation/remove-if-possible.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { createWholeFile, replaceWholeFile } from "./create-whole-file.ts";
import { livenessOf, type ProcessIdentity, thisProcess } from "./process-identity.ts";

/** How often the owner of a lock gives a sign of life. */
const beatMs = 3_000;

/**
 * Renews the time of a lock file while its owner lives, without keeping the process alive. A lock that another process has
 * taken over is left alone: it is another file by then, and the first byte is only ever written into the own one.
 */
export function startHeartbeat(lockFile: string, text: () => string, everyMs = beatMs): { stop(): void } {
  const timer = setInterval(() => {
    if (beat(lockFile, text()) === "lost") clearInterval(timer);
  }, everyMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Writing gives the file the time of the file system; where nothing can be opened, this machine's time has to do. */
export function beat(lockFile: string, text: string): "beaten" | "lost" {
  try {
    return writeInto(lockFile, text, text.slice(0, 1)) ? "beaten" : "lost";
  } catch {
    try {
      const now = new Date();
      utimesSync(lockFile, now, now);
    } catch {
      // It is gone, or the disk is: the next write of its owner says so.
    }
  }
  return "beaten";
}

/** Writes over the beginning of a lock that still has this text; one that has taken its place is another file. */
function writeInto(lockFile: string, text: string, beginning: string): boolean {
  const descriptor = openSync(lockFile, "r+");
  try {
    const bytes = Buffer.alloc(Buffer.byteLength(text) + 1);
    const length = readSync(descriptor, bytes, 0, bytes.length, 0);
    if (bytes.toString("utf8", 0, length) !== text) return false;
    writeSync(descriptor, beginning, 0);
    return true;
  } finally {
    closeSync(descriptor);
  }
}

export interface OwnerLock {
  readonly lockFile: string;
  /** Why the owner before lost it: its process is gone, it gave no sign of life, or it was made to; absent: there was none. */
  readonly takenFrom?: "gone" | "expired" | "forced";
  /** False once another process has taken it over. */
  isHeld(): boolean;
  /** Whether the owner has nothing to do just now, so that others may take the lock; at first it is busy. */
  setIdle(isIdle: boolean): void;
  release(): void;
}

/** `by` is absent when the holder cannot be named. */
export type LockAnswer =
  | { readonly type: "taken"; readonly lock: OwnerLock }
  | ({ readonly type: "held"; readonly lockFile: string } & HeldFacts);

interface HeldFacts {
  readonly by?: ProcessIdentity;
  /** It does nothing with the file just now, and leaves it to who asks with `takeOver: "idle"`. */
  readonly isIdle?: true;
  /** It cannot be seen from here whether the holder lives: it loses the lock when it gives no sign of life for so long. */
  readonly expiresInMs?: number;
}

export interface OwnerLockOptions {
  /** Milliseconds since 1970; by default the clock of the file system, which all who share it have in common. */
  readonly now?: () => number;
  /** Takes the lock from whichever process holds it, or only from one that is idle; the holder's next write is refused. */
  readonly takeOver?: TakeOver;
  /** Makes the lock another name of one that this process holds already, where it holds one; such locks are never idle. */
  readonly group?: LockGroup | undefined;
}

export type TakeOver = boolean | "idle";

/**
 * Locks that one process takes together, as of a hundred children: names of one file, because a new file costs the file system many times
 * what a further name costs. Each is released, and taken over by others, for itself.
 */
export interface LockGroup {
  /** Those that are held, by their names. */
  readonly held: Map<string, LockText>;
}

/** What a lock of this process says, and the number of its file. */
interface LockText {
  readonly text: string;
  readonly ino: number;
}

export function createLockGroup(): LockGroup {
  return { held: new Map() };
}

/** Makes this process the only writer of a file, by a lock file beside it. A lock whose owner is gone is taken over. */
export function takeOwnerLock(file: string, options: OwnerLockOptions = {}): LockAnswer {
  const lockFile = `${file}.lock`;
  const now = options.now ?? (() => fileSystemNow(lockFile));
  const { takeOver = false, group } = options;
  return takeLock(lockFile, { file, now, takeOver, group, depth: 0 });
}

/** Whether some process that still runs writes the file; a lock that cannot be read, as another user's, counts as held. */
export function hasLiveOwner(file: string, options: OwnerLockOptions = {}): boolean {
  return lookAtLock(file, options).type === "held";
}

/** How a file is held, without changing anything. */
export function lookAtLock(
  file: string,
  options: OwnerLockOptions = {},
): { readonly type: "free" } | ({ readonly type: "held"; readonly changedAt?: number } & HeldFacts) {
  try {
    const holder = readHolder(`${file}.lock`);
    if (holder === undefined) return { type: "free" };
    const standing = standingOf(holder, file, options.now ?? Date.now);
    return standing.type === "lost" ? { type: "free" } : { ...heldFacts(holder, standing), type: "held" };
  } catch {
    return { type: "held" };
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
  /** How long without a sign of life the owner itself says it may be silent; absent in locks of old versions. */
  readonly expiresAfterMs: number | undefined;
  readonly isIdle: boolean;
}

const attempts = 5;
const deepestTakeover = 3;
/** Three signs of life in a row may be late; who is silent for longer can lose the lock to another machine or container. */
const expiresAfterMs = 4 * beatMs;
/** A lock without a readable owner is one that is being written, for this long; a power cut can leave one too. */
const unreadableTimeoutMs = 10_000;
/** A lock of an old version gives no sign of life; with its file it counts as left behind when both rest this long. */
const silentTimeoutMs = 2 * 60_000;

interface Taking {
  readonly file: string;
  readonly now: () => number;
  readonly takeOver: TakeOver;
  readonly group?: LockGroup | undefined;
  /** How many locks of locks lie above this one. */
  readonly depth: number;
}

/**
 * Who replaces a lock left behind must first hold the lock of that lock and find it unchanged, so that of several who
 * see the same dead owner exactly one takes over.
 */
function takeLock(lockFile: string, taking: Taking): LockAnswer {
  const { file, now, takeOver, group, depth } = taking;
  const token = randomBytes(9).toString("hex");
  const text = JSON.stringify({ ...thisProcess(), expiresAfterMs, token, use: "busy" });
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const created = createLock(lockFile, text, group);
    if (created !== undefined) return taken(lockFile, created, { beats: depth === 0, group });
    const holder = readHolder(lockFile);
    if (holder === undefined) continue;
    const standing = standingOf(holder, file, now);
    const isLost = standing.type === "lost" || takeOver === true || (takeOver === "idle" && holder.isIdle);
    if (depth === deepestTakeover || !isLost)
      return { type: "held", lockFile, ...heldFacts(holder, standing) };
    const guard = takeLock(`${lockFile}.lock`, { file: lockFile, now, takeOver: false, depth: depth + 1 });
    if (guard.type === "held") return guard;
    try {
      if (readHolder(lockFile)?.text !== holder.text) continue;
      replaceWholeFile(lockFile, text);
      const takenFrom = standing.type === "lost" ? standing.reason : "forced";
      return taken(lockFile, lockTextOf(lockFile, text), { beats: depth === 0, takenFrom, group });
    } finally {
      guard.lock.release();
    }
  }
  return { type: "held", lockFile };
}

/** Undefined where there is a lock already. */
function createLock(lockFile: string, text: string, group: LockGroup | undefined): LockText | undefined {
  for (const [name, known] of group?.held ?? []) {
    if (inodeOf(name) !== known.ino) {
      // Another process has it by now.
      group?.held.delete(name);
      continue;
    }
    try {
      linkSync(name, lockFile);
      // One that was taken over in between is that process's lock, which this one then is too.
      return inodeOf(lockFile) === known.ino ? known : undefined;
    } catch (error) {
      if (errorCode(error) === "EEXIST") return undefined;
      // On another disk, or with as many names as a file can have, it gets a file of its own.
      break;
    }
  }
  return createWholeFile(lockFile, text) === "created" ? lockTextOf(lockFile, text) : undefined;
}

function lockTextOf(lockFile: string, text: string): LockText {
  return { text, ino: statSync(lockFile).ino };
}

function inodeOf(lockFile: string): number | undefined {
  return statSync(lockFile, { throwIfNoEntry: false })?.ino;
}

function taken(
  lockFile: string,
  { text, ino }: LockText,
  {
    beats,
    takenFrom,
    group,
  }: { readonly beats: boolean; readonly takenFrom?: OwnerLock["takenFrom"] } & Pick<Taking, "group">,
): LockAnswer {
  group?.held.set(lockFile, { text, ino });
  // By its number, which needs no descriptor: locks are looked at before each write, also when descriptors are scarce.
  const isHeld = (): boolean => inodeOf(lockFile) === ino;
  // Both texts are equally long, so that one is written over the other in the same file.
  const texts = { busy: text, idle: text.replace(/"busy"\}$/, '"idle"}') };
  let own = text;
  const heart = beats ? startHeartbeat(lockFile, () => own) : undefined;
  const setIdle = (isIdle: boolean) => {
    if (group !== undefined) return;
    const next = isIdle ? texts.idle : texts.busy;
    try {
      if (next !== own && writeInto(lockFile, own, next)) own = next;
    } catch {
      // It is gone, or the disk is: the next write of its owner says so.
    }
  };
  const release = () => {
    heart?.stop();
    group?.held.delete(lockFile);
    // One that stays is taken over when this process has ended.
    if (isHeld() && holdsText(lockFile, own)) removeIfPossible(lockFile);
  };
  const lock = { lockFile, isHeld, setIdle, release, takenFrom };
  return { type: "taken", lock };
}

/** Another program may have written its own text into the same file. */
function holdsText(lockFile: string, text: string): boolean {
  try {
    return readFileSync(lockFile, "utf8") === text;
  } catch {
    // It cannot be read just now, and its number has said whose it is.
    return true;
  }
}

type Standing =
  | { readonly type: "lost"; readonly reason: "gone" | "expired" }
  | { readonly type: "kept"; readonly expiresInMs?: number };

/** The time is asked for only where it decides: it may cost a file. */
function standingOf(holder: Holder, file: string, now: () => number): Standing {
  const { owner, modified } = holder;
  if (owner === undefined) return byTime(now() - modified, unreadableTimeoutMs);
  const liveness = livenessOf(owner);
  if (liveness === "gone") return { type: "lost", reason: "gone" };
  if (liveness === "running") return { type: "kept" };
  if (holder.expiresAfterMs !== undefined) return byTime(now() - modified, holder.expiresAfterMs);
  const written = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return byTime(now() - Math.max(modified, written), silentTimeoutMs);
}

function byTime(silentMs: number, timeoutMs: number): Standing {
  if (silentMs >= timeoutMs) return { type: "lost", reason: "expired" };
  return { type: "kept", expiresInMs: timeoutMs - silentMs };
}

function heldFacts(
  { owner, modified, isIdle }: Holder,
  standing: Standing,
): HeldFacts & { readonly changedAt: number } {
  const expiresInMs = standing.type === "kept" ? standing.expiresInMs : undefined;
  return {
    changedAt: modified,
    by: owner,
    ...(isIdle ? { isIdle } : {}),
    expiresInMs,
  };
}

/** The clock of another machine may differ from this one's; files that both can see have the time of one of them. */
function fileSystemNow(lockFile: string): number {
  const probe = `${lockFile}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    writeFileSync(probe, "", { flag: "wx", mode: 0o600 });
    return statSync(probe).mtimeMs;
  } catch {
    return Date.now();
  } finally {
    rmSync(probe, { force: true });
  }
}

function readHolder(lockFile: string): Holder | undefined {
  try {
    const text = readFileSync(lockFile, "utf8");
    return { text, modified: statSync(lockFile).mtimeMs, ...readOwner(text) };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw fileError("read", lockFile, error);
  }
}

function readOwner(text: string): Pick<Holder, "owner" | "expiresAfterMs" | "isIdle"> {
  const unowned = { owner: undefined, expiresAfterMs: undefined, isIdle: false };
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value)) return unowned;
    const { pid, machine, started, expiresAfterMs, use } = value;
    const isOwner = typeof pid === "number" && Number.isSafeInteger(pid) && pid > 0;
    if (!isOwner || typeof machine !== "string" || typeof started !== "string") return unowned;
    const isLimit = typeof expiresAfterMs === "number" && expiresAfterMs > 0;
    return {
      owner: { pid, machine, started },
      expiresAfterMs: isLimit ? expiresAfterMs : undefined,
      isIdle: use === "idle",
    };
  } catch {
    return unowned;
  }
}

interface WaitForOwnerOptions {
  readonly signal: AbortSignal;
  /** Called once when there is something to wait for, with the time it takes at most. */
  readonly onWait?: (wait: { readonly by?: ProcessIdentity; readonly maxMs: number }) => void;
}

const lookEveryMs = 500;

/**
 * Waits while it cannot be seen from here whether the owner of a file lives: until it gives a sign of life, or has lost its
 * lock. Returns immediately for a file that is free, certainly held, or left to others by an idle owner.
 */
export async function waitForOwner(file: string, { signal, onWait }: WaitForOwnerOptions): Promise<void> {
  let firstChange: number | undefined;
  while (true) {
    const look = lookAtLock(file, { now: () => fileSystemNow(`${file}.lock`) });
    if (look.type === "free" || look.isIdle === true) return;
    if (look.expiresInMs === undefined || look.changedAt === undefined) return;
    if (firstChange === undefined) {
      firstChange = look.changedAt;
      onWait?.({ maxMs: look.expiresInMs, by: look.by });
    }
    if (look.changedAt !== firstChange) return;
    await sleep(Math.min(look.expiresInMs + 1, lookEveryMs), signal);
  }
}

/**
 * Puts a copy in the place of a file whose former writer may still live. What that one writes from now on goes into the
 * file it has open, which has no name any more, and never behind the lines of the new owner.
 */
export function fenceFile(file: string): void {
  const copy = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const old = openSync(file, "r");
    try {
      copyFileSync(file, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      const own = openSync(copy, "r+");
      try {
        fsyncSync(own);
        renameSync(copy, file);
        // The former writer may have been at it while the copy was made; later it can only write for itself.
        copyRest(old, own);
      } finally {
        closeSync(own);
      }
    } finally {
      closeSync(old);
    }
  } catch (error) {
    if (errorCode(error) === "ENOENT") return;
    throw fileError("take over", file, error);
  } finally {
    rmSync(copy, { force: true });
  }
}

function copyRest(from: number, to: number): void {
  const chunk = Buffer.alloc(64 * 1024);
  for (let at = fstatSync(to).size; ; ) {
    const read = readSync(from, chunk, 0, chunk.length, at);
    if (read === 0) return;
    for (let done = 0; done < read; ) done += writeSync(to, chunk, done, read - done, at + done);
    at += read;
  }
}

/** A lock without a readable owner, as other programs make them, counts as left behind after ten seconds. */
const timeoutMs = 20_000;
const maxPauseMs = 12;

/**
 * Runs an action while this process alone holds `<path>.lock`. The action must be synchronous and short: what it decides
 * and writes is one step for all processes. The lock of a process that died is taken over.
 */
export async function withFileLock<T>(path: string, action: (lock: OwnerLock) => T): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const until = Date.now() + timeoutMs;
  for (let attempt = 1; ; attempt += 1) {
    // Mostly it is enough to see that the lock is still there; now and then its owner is looked at.
    const isTried = attempt % 8 === 1 || !existsSync(`${path}.lock`);
    const answer = isTried ? takeOwnerLock(path) : undefined;
    if (answer?.type === "taken") {
      try {
        return action(answer.lock);
      } finally {
        answer.lock.release();
      }
    }
    if (answer !== undefined && Date.now() > until) throw held(answer.lockFile, answer.by?.pid);
    // Uneven pauses, so that several who wait do not meet again and again.
    await sleep(Math.random() * Math.min(maxPauseMs, attempt * 2), never);
  }
}

const never = new AbortController().signal;

function held(file: string, pid: number | undefined): RetinueError {
  const owner = pid === undefined ? "another program" : `the process ${pid}`;
  return new RetinueError("file-locked", `${owner} has held ${file} for ${timeoutMs / 1000} s.`, {
    advice: "End that process, or remove the file if it no longer runs.",
  });
}

// @io
import { type BigIntStats, lstatSync, realpathSync, statSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

/**
 * What a reading has looked at, so that it can be kept until something of it changes. A path is added before it is read:
 * what changes while it is read counts as changed afterwards.
 */
export interface FileSnapshot {
  /** `content`: files or folders are read; `kind`: only what they are and whose; `place`: only where links lead. */
  add(paths: readonly string[], what?: PathAspect): void;
  /** Adds a file that is read, and says how large it is; 0 where there is none. */
  stamp(file: string): { readonly stamp: PathStamp; readonly size: number };
  /** Adds an answer that comes from somewhere else. */
  ask(question: () => Promise<string>): Promise<string>;
  /** Whether a new reading would find the same. */
  isUnchanged(): Promise<boolean>;
}

export type PathAspect = "content" | "kind" | "place";

/** How a path looks now; undefined where its last change is too recent to distinguish a further one by the clock. */
export type PathStamp = string | undefined;

/** Lets other work of the host continue while thousands of files are looked at. */
const pathsPerSlice = 256;

/**
 * Keeps what was read until something of its snapshot changes. Callers share a reading, but none gets one that began before
 * it asked: all that ask while one is under way share the one that follows it, so each sees what was written before.
 */
export interface CachedReading<Value> {
  read(): Promise<Value>;
  /** The next reading starts anew. */
  forget(): void;
}

export function cachedUntilChanged<Value>(
  read: (snapshot: FileSnapshot) => Promise<Value>,
  now: () => number = Date.now,
): CachedReading<Value> {
  let kept: { readonly value: Value; readonly snapshot: FileSnapshot } | undefined;
  let forgotten = 0;
  let running: Promise<Value> | undefined;
  let next: Promise<Value> | undefined;

  async function readIfChanged(): Promise<Value> {
    if (kept !== undefined && (await kept.snapshot.isUnchanged())) return kept.value;
    const snapshot = createFileSnapshot(now);
    const atStart = forgotten;
    const value = await read(snapshot);
    kept = atStart === forgotten ? { value, snapshot } : undefined;
    return value;
  }

  async function readAlone(): Promise<Value> {
    try {
      return await readIfChanged();
    } finally {
      running = undefined;
    }
  }

  function start(): Promise<Value> {
    next = undefined;
    running = readAlone();
    return running;
  }

  return {
    read() {
      if (next !== undefined) return next;
      if (running === undefined) return start();
      next = running.then(start, start);
      return next;
    },
    forget() {
      forgotten += 1;
      kept = undefined;
    },
  };
}

export function createFileSnapshot(now: () => number = Date.now): FileSnapshot {
  const stamps = new Map<string, { readonly path: string; readonly what: PathAspect; stamp: PathStamp }>();
  const answers: { readonly question: () => Promise<string>; readonly answer: string }[] = [];

  function note(path: string, what: PathAspect): StampedPath {
    const key = `${what} ${path}`;
    const look = lookAt(path, what, now());
    const known = stamps.get(key);
    if (known === undefined) stamps.set(key, { path, what, stamp: look.stamp });
    // It was read twice, and something happened in between: no later state is the one that was read.
    else if (known.stamp !== look.stamp) known.stamp = undefined;
    return look;
  }

  return {
    add(paths, what = "content") {
      for (const path of paths) note(path, what);
    },
    stamp: (file) => note(file, "content"),
    async ask(question) {
      const answer = await question();
      answers.push({ question, answer });
      return answer;
    },
    async isUnchanged() {
      for (const { question, answer } of answers) if ((await question()) !== answer) return false;
      let looked = 0;
      for (const { path, what, stamp } of stamps.values()) {
        if (stamp === undefined || lookAt(path, what, now()).stamp !== stamp) return false;
        looked += 1;
        if (looked % pathsPerSlice === 0) await setImmediate();
      }
      return true;
    },
  };
}

type StampedPath = ReturnType<FileSnapshot["stamp"]>;

function lookAt(path: string, what: PathAspect, now: number): StampedPath {
  if (what === "place") return { stamp: realPath(path), size: 0 };
  const entry = statsOf(lstatSync, path);
  const isLink = entry?.isSymbolicLink() === true;
  const target = isLink ? statsOf(statSync, path) : entry;
  const size = Number(target?.size ?? 0);
  if (what === "kind") return { stamp: `${kindOf(entry)} ${kindOf(target)}`, size };
  if (isRecent(entry, now) || isRecent(target, now)) return { stamp: undefined, size };
  if (!isLink) return { stamp: changeOf(entry), size };
  return { stamp: `${changeOf(entry)} ${changeOf(target)} ${realPath(path)}`, size };
}

function statsOf(stat: typeof lstatSync | typeof statSync, path: string): BigIntStats | undefined {
  try {
    return stat(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // A folder on the way that may not be entered, a file in its place, a circle of links: nothing can be read there.
    return undefined;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return "";
  }
}

function kindOf(stats: BigIntStats | undefined): string {
  return stats === undefined ? "-" : `${stats.mode}:${stats.uid}`;
}

function changeOf(stats: BigIntStats | undefined): string {
  if (stats === undefined) return "-";
  const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = stats;
  return `${dev}:${ino}:${mode}:${uid}:${size}:${mtimeNs}:${ctimeNs}`;
}

/**
 * Clocks of file systems advance in steps: two changes within one step leave the same time behind. Most steps are a few
 * milliseconds long; where times are whole seconds, they may be two.
 */
function isRecent(stats: BigIntStats | undefined, now: number): boolean {
  if (stats === undefined) return false;
  const stepMs = stats.ctimeNs % 1_000_000_000n === 0n ? 2_100 : 100;
  return now - Number(stats.ctimeMs) < stepMs;
}

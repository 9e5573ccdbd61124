import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  type Stats,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { RetinueError } from "../foundation/retinue-error.ts";
import { fileError } from "./file-error.ts";
import { type LockAnswer, type OwnerLock, type OwnerLockOptions, takeOwnerLock } from "./owner-lock.ts";

export interface AppendLogOptions extends OwnerLockOptions {
  /** The length the file must have, in bytes: that of the text the caller has read, 0 for a file that must be new. */
  readonly expectLength?: number;
}

/** A file of lines that only grows, with this process as its only writer until it is closed. */
export interface AppendLog extends Disposable {
  readonly file: string;
  /** Bytes in the file. */
  readonly length: number;
  /** The last line had no end, as after a crash, and was given one when the file was opened. */
  readonly repaired: boolean;
  /** Writes whole lines and returns when the system has them; all of them or, with a Fault, none. Gives the bytes written. */
  append(lines: readonly string[]): number;
  close(): void;
}

/** Opens a file for appending, making it and its folder where they are missing; refuses a file another process writes. */
export function openAppendLog(file: string, options: AppendLogOptions = {}): AppendLog {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileError("make the folder of", file, error);
  }
  const answer = takeOwnerLock(file, options);
  if (answer.type === "held") throw inUse(file, answer);
  try {
    return openOwnedLog(file, answer.lock, options.expectLength);
  } catch (error) {
    answer.lock.release();
    throw error;
  }
}

function openOwnedLog(file: string, lock: OwnerLock, expectLength: number | undefined): AppendLog {
  const descriptor = openFile(file);
  try {
    const status = statusOf(descriptor, file);
    if (expectLength !== undefined && status.size !== expectLength)
      throw changed(file, expectLength, status.size);
    const isTorn = endsInsideLine(descriptor, status.size);
    const length = isTorn
      ? status.size + writeWhole({ descriptor, file, bytes: lineEnd, before: status.size })
      : status.size;
    return createLog({ file, lock, descriptor, length, repaired: isTorn, hadName: status.nlink > 0 });
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

interface OpenFile {
  readonly file: string;
  readonly lock: OwnerLock;
  readonly descriptor: number;
  readonly length: number;
  readonly repaired: boolean;
  /** Some file systems count no names; there, a removed file cannot be noticed. */
  readonly hadName: boolean;
}

function createLog({ file, lock, descriptor, repaired, hadName, ...start }: OpenFile): AppendLog {
  let length = start.length;
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    closeSync(descriptor);
    lock.release();
  };
  const append = (lines: readonly string[]): number => {
    if (isClosed) throw new RetinueError("log-closed", `${file} was closed before this was to be written to it.`);
    if (lines.length === 0) return 0;
    const before = statusOf(descriptor, file);
    if (hadName && before.nlink === 0) throw removed(file);
    // Programs that know nothing of the lock may add a line, such as a title; theirs must not run into ours.
    const start = before.size !== length && endsInsideLine(descriptor, before.size) ? "\n" : "";
    const bytes = Buffer.from(`${start}${joinLines(lines, file)}`);
    const written = writeWhole({ descriptor, file, bytes, before: before.size });
    length = before.size + written;
    return written;
  };
  return {
    file,
    repaired,
    get length() {
      return length;
    },
    append,
    close,
    [Symbol.dispose]: close,
  };
}

const lineEnd = Buffer.from("\n");

function joinLines(lines: readonly string[], file: string): string {
  if (lines.some((line) => line.includes("\n")))
    throw new RetinueError(
      "line-break-in-line",
      `A line for ${file} has a line break in it; it would be read as two.`,
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
    throw new RetinueError("not-a-file", `${file} is not an ordinary file, so nothing can be kept in it.`, {
      advice: "Move away what stands there.",
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
  return new RetinueError(
    "file-in-use",
    `${file} is being written by ${who}, and only one process may do that at a time.`,
    {
      advice: `End that one first, or go on in a copy of the session; if it is certainly gone, remove ${answer.lockFile}.`,
    },
  );
}

function changed(file: string, expected: number, found: number): RetinueError {
  return new RetinueError(
    "file-changed",
    `${file} has ${found} bytes, not ${expected}: it was changed after it was read.`,
    {
      advice: "Read it again, then go on from there.",
    },
  );
}

function removed(file: string): RetinueError {
  return new RetinueError("file-removed", `${file} was removed or replaced while this process was writing to it.`, {
    advice: "Start a new session; what was said so far is still in memory but no longer on disk.",
  });
}

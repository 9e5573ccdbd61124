// @io
import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { join } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { type LockReading, lockName, readLock } from "@retinue/config/lock/lock-file.ts";
import { findRepositoryRoot, realFolder } from "@retinue/config/settings/trust-store.ts";

/** Far above the lock of a project with thousands of parts. */
const maxBytes = 16 * 1024 * 1024;

export interface LockFileReading extends LockReading {
  /** The file as it is; absent where it could not be read. */
  readonly text?: string;
}

/** Reads a lock, or says why it cannot be read; undefined where there is none. */
export async function readLockFile(file: string): Promise<LockFileReading | undefined> {
  const there = await lstat(file).catch(() => undefined);
  if (there === undefined) return undefined;
  const text = await textOf(file).catch(() => "it cannot be opened" as const);
  return typeof text === "string"
    ? unreadable(file, text)
    : { ...readLock(text.text, file), text: text.text };
}

/** A device or a pipe has no end, so that only a file of a known size is read. */
async function textOf(file: string): Promise<{ readonly text: string } | string> {
  // A pipe would wait for a writer.
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = await handle.stat();
    if (!found.isFile()) return "it is not a file";
    if (found.size > maxBytes) return `it is larger than ${maxBytes / 1024 / 1024} MB`;
    return { text: await handle.readFile("utf8") };
  } finally {
    await handle.close();
  }
}

function unreadable(file: string, reason: string): LockReading {
  const finding: Diagnostic = {
    severity: "error",
    code: "unreadable-file",
    message: `${lockName} cannot be read: ${reason}.`,
    advice: "Check that it is a file that you may read; `retinue agents lock` rewrites it.",
    file,
  };
  return { diagnostics: [finding] };
}

/** Where the lock of a folder is, whether there is one or not. */
export async function lockFileOf(cwd: string): Promise<string> {
  return join((await findRepositoryRoot(cwd)) ?? (await realFolder(cwd)), lockName);
}

// @io
import { constants } from "node:fs";
import { access, mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { retryWhileScarce } from "../foundation/retry-while-scarce.ts";
import { type NoteTemporary, temporaryName } from "../storage/create-temporary-notes.ts";

export interface WriteOptions {
  /** Kept for a file that was there before; absent for a new one. */
  readonly mode?: number;
  /** Asked just before the new content takes the place of the old; false leaves the old. */
  readonly stillWanted: () => Promise<boolean>;
  /** Hears of the half-written file before it is made, so that somebody can remove it after a crash. */
  readonly noteTemporary?: NoteTemporary | undefined;
}

/** Replaces a file in one step, so that no reader sees half of it; makes the folders above it. False: no longer wanted. */
export async function writeAtomically(
  path: string,
  bytes: Uint8Array,
  { mode, stillWanted, noteTemporary }: WriteOptions,
): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true });
  // Replacing needs rights on the folder only; a file that its owner made read-only stays as it is.
  if (mode !== undefined) await access(path, constants.W_OK);
  const temporary = join(dirname(path), temporaryName(basename(path)));
  const forget = noteTemporary?.(temporary);
  try {
    await writeNew(temporary, bytes, mode);
    if (!(await stillWanted())) return false;
    await rename(temporary, path);
    return true;
  } catch (error) {
    if (mode === undefined || !refusesReplacement(error)) throw error;
    if (!(await stillWanted())) return false;
    await writeFile(path, bytes);
    return true;
  } finally {
    await rm(temporary, { force: true });
    forget?.();
  }
}

async function writeNew(file: string, bytes: Uint8Array, mode: number | undefined): Promise<void> {
  await using handle = await retryWhileScarce(() => open(file, "wx", 0o666));
  await handle.writeFile(bytes);
  if (mode !== undefined) await handle.chmod(mode & 0o7777);
  await handle.sync();
}

/** A folder without write permission, or a file that is a mount of its own, can only be written in place. */
function refusesReplacement(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EACCES" || code === "EPERM" || code === "EBUSY";
}

// @io
import { constants, existsSync } from "node:fs";
import { access, mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { retryOnResourceLimit } from "@retinue/base/foundation/retry-on-resource-limit.ts";
import { type NoteTemporary, temporaryName } from "@retinue/base/storage/create-temporary-notes.ts";
import { isOpenedAt } from "./is-opened-at.ts";

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
  await using folder = await openFolder(dirname(path));
  // Through the descriptor: whatever takes the folder's name meanwhile, the file is written into this one.
  const target = folder.below(basename(path));
  // Replacing needs rights on the folder only; a file that its owner made read-only stays as it is.
  if (mode !== undefined) await access(target, constants.W_OK);
  const name = temporaryName(basename(path));
  const temporary = folder.below(name);
  const forget = noteTemporary?.(join(dirname(path), name));
  try {
    await writeNew(temporary, bytes, mode);
    if (!(await stillWanted())) return false;
    await rename(temporary, target);
    return true;
  } catch (error) {
    if (mode === undefined || !refusesReplacement(error)) throw error;
    if (!(await stillWanted())) return false;
    // A link in the place of the file is not followed.
    const flag = constants.O_WRONLY | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0);
    await writeFile(target, bytes, { flag });
    return true;
  } finally {
    await rm(temporary, { force: true });
    forget?.();
  }
}

interface HeldFolder extends AsyncDisposable {
  /** The path of an entry in this very folder. */
  below(name: string): string;
}

/** Holds a folder by a descriptor, where the system gives names to what descriptors hold. */
async function openFolder(path: string): Promise<HeldFolder> {
  const below = (name: string): string => join(path, name);
  if (process.platform !== "linux" || !existsSync("/proc/self/fd"))
    return { below, [Symbol.asyncDispose]: async () => undefined };
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const handle = await retryOnResourceLimit(() => open(path, flags)).catch((error: unknown) => {
    // A folder that may be written to and not listed cannot be held.
    if (error instanceof Error && "code" in error && error.code === "EACCES") return undefined;
    throw error;
  });
  if (handle === undefined) return { below, [Symbol.asyncDispose]: async () => undefined };
  if (!isOpenedAt(handle.fd, path)) {
    await handle.close();
    throw new Error(`${path} led somewhere else in the moment it was opened`);
  }
  return {
    below: (name) => `/proc/self/fd/${handle.fd}/${name}`,
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function writeNew(file: string, bytes: Uint8Array, mode: number | undefined): Promise<void> {
  await using handle = await retryOnResourceLimit(() => open(file, "wx", 0o666));
  await handle.writeFile(bytes);
  if (mode !== undefined) await handle.chmod(mode & 0o7777);
  await handle.sync();
}

/** A folder without write permission, or a file that is a mount of its own, can only be written in place. */
function refusesReplacement(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EACCES" || code === "EPERM" || code === "EBUSY";
}

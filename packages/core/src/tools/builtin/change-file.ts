// @io
import { constants, existsSync, type Stats } from "node:fs";
import { access, mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { findRealPath } from "@retinue/base/foundation/find-real-path.ts";
import { retryOnResourceLimit } from "@retinue/base/foundation/retry-on-resource-limit.ts";
import { type NoteTemporary, temporaryName } from "@retinue/base/storage/create-temporary-notes.ts";
import { refuseBase } from "../file-ledger.ts";
import { isOpenedAt } from "../is-opened-at.ts";
import { isInside, resolveWorkspacePath } from "../resolve-workspace-path.ts";
import type { ToolContext, ToolOutcome } from "../tool.ts";
import { failed, fileTrouble } from "./builtin-tool.ts";
import { digestOf, fingerprintOf, loadBytes, maxLoadedBytes, openFile } from "./open-file.ts";

/** What is in the file now; `bytes` are absent when it is too large to be held. */
export interface CurrentFile {
  readonly bytes?: Buffer;
  readonly digest: string;
  readonly stats: Stats;
}

export type ChangeDecision =
  | { readonly type: "write"; readonly bytes: Buffer; readonly outcome: ToolOutcome }
  | { readonly type: "refused"; readonly reason: string };

interface FileChangeRequest {
  readonly given: string;
  /** Whether all of the file is replaced, so that all of it must have been seen. */
  readonly whole: boolean;
  /** Decides on what is there now (undefined: no file); given the absolute path. Does no I/O. */
  readonly decide: (current: CurrentFile | undefined, path: string) => ChangeDecision;
}

/** The one way files are changed: one change at a time for each file, only on a base that was seen, in one step. */
export async function changeFile(request: FileChangeRequest, context: ToolContext): Promise<ToolOutcome> {
  const located = await locateDecided(request.given, context);
  if (located.type === "refused") return failed(located.reason);
  const { path, realPath } = located;
  const { signal, writeInTurn } = context;
  const alone = () => changeLocated(request, { path, realPath }, context);
  const change = () => writeInTurn?.(realPath, signal, alone) ?? alone();
  try {
    return await (context.files.exclusively?.(realPath, signal, change) ?? change());
  } catch (error) {
    signal.throwIfAborted();
    return failed(fileTrouble(error, path));
  }
}

interface Place {
  readonly path: string;
  readonly realPath: string;
}

async function changeLocated(
  { whole, decide }: FileChangeRequest,
  { path, realPath }: Place,
  context: ToolContext,
): Promise<ToolOutcome> {
  const current = await loadCurrent(realPath);
  if (current?.type === "refused") return failed(current.reason);
  const file = current?.file;
  if (file !== undefined) {
    const { agent, files: ledger } = context;
    const reason = refuseBase({ path, realPath, digest: file.digest, ledger, agentId: agent.id, whole });
    if (reason !== undefined) return failed(reason);
  }
  const decision = decide(file, path);
  if (decision.type === "refused") return failed(decision.reason);
  context.signal.throwIfAborted();
  const written = await writeAtomically(realPath, decision.bytes, {
    mode: file?.stats.mode,
    noteTemporary: context.noteTemporary,
    stillWanted: async () =>
      (await findRealPath(realPath)) === realPath &&
      (await loadCurrent(realPath))?.file?.digest === file?.digest,
  });
  if (!written) {
    return failed(
      `${path} was changed by another program at the same moment. Read it again and repeat the change.`,
    );
  }
  await noteWritten(realPath, decision.bytes, context);
  return decision.outcome;
}

async function noteWritten(realPath: string, bytes: Buffer, { agent, files }: ToolContext): Promise<void> {
  const stats = await stat(realPath);
  const digest = bytes.length > maxLoadedBytes ? fingerprintOf(stats) : digestOf(bytes);
  // Lines that were seen before may have moved, so only whether all of it is known is kept.
  files.noteSeen(realPath, {
    digest,
    mtimeMs: stats.mtimeMs,
    partial: files.seen(realPath)?.partial ?? false,
  });
  files.noteChange(realPath, { agent, digest });
}

type Loaded =
  | { readonly type: "loaded"; readonly file: CurrentFile }
  | { readonly type: "refused"; readonly reason: string; readonly file?: undefined };

async function loadCurrent(path: string): Promise<Loaded | undefined> {
  const opened = await openFile(path);
  switch (opened.type) {
    case "missing":
      return undefined;
    case "folder":
      return { type: "refused", reason: `${path} is a folder, not a file.` };
    case "refused":
      return opened;
    case "file": {
      using handle = opened.handle;
      const { stats } = opened;
      const file = (await loadBytes(handle.descriptor, stats)) ?? { digest: fingerprintOf(stats), stats };
      return { type: "loaded", file };
    }
  }
}

export type Located =
  | { readonly type: "located"; readonly path: string; readonly realPath: string }
  | { readonly type: "refused"; readonly reason: string };

/** Finds where a given path leads, and refuses the places whose files are no files. */
async function locate(given: string, context: ToolContext): Promise<Located> {
  const home = context.environment["HOME"] ?? context.environment["USERPROFILE"];
  const resolved = resolveWorkspacePath(given, { directory: context.directory, home });
  if (resolved.type === "refused") return resolved;
  try {
    const realPath = await findRealPath(resolved.path);
    if (isPseudoFile(realPath) || isPseudoFile(resolved.path)) {
      return {
        type: "refused",
        reason: `${resolved.path} belongs to the system (/dev, /proc), not to a project, so file tools do not touch it.`,
      };
    }
    return { type: "located", path: resolved.path, realPath };
  } catch (error) {
    return { type: "refused", reason: fileTrouble(error, resolved.path) };
  }
}

/** The same for a file that is about to be opened: it must be the one the call was allowed for. */
export async function locateDecided(given: string, context: ToolContext): Promise<Located> {
  const located = await locate(given, context);
  if (located.type === "refused" || context.approvedPaths === undefined) return located;
  if (context.approvedPaths.includes(located.realPath)) return located;
  return {
    type: "refused",
    reason: `${located.path} leads to a different place than when this call was allowed; nothing was done.`,
  };
}

/** Reading there can block for ever, never end, or give away the secrets of a process. */
function isPseudoFile(path: string): boolean {
  return isInside(path, [`${sep}dev`, `${sep}proc`]) && !isInside(path, [`${sep}dev${sep}shm`]);
}

interface WriteOptions {
  /** Kept for a file that was there before; absent for a new one. */
  readonly mode?: number;
  /** Asked just before the new content takes the place of the old; false leaves the old. */
  readonly stillWanted: () => Promise<boolean>;
  /** Is notified of the half-written file before it is made, so that it can be removed after a crash. */
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
    throw new Error(`${path} pointed to a different place when it was opened`);
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

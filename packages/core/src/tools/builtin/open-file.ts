import { hash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, read, readSync, type Stats, statSync } from "node:fs";
import { promisify } from "node:util";
import { retryOnResourceLimit } from "@retinue/base/foundation/retry-on-resource-limit.ts";
import { isOpenedAt } from "../is-opened-at.ts";
import { fileTrouble } from "./builtin-tool.ts";

/** The largest file that is held in memory; larger ones are shown in pieces and not edited. */
export const maxLoadedBytes = 16 * 1024 * 1024;

/** Larger pieces are read by the thread pool; for smaller ones a trip there costs more than the call. */
const maxImmediateBytes = 64 * 1024;

/** A file of this process; closed when it is disposed of. */
export interface FileDescriptor extends Disposable {
  readonly descriptor: number;
}

export type OpenedFile =
  | { readonly type: "file"; readonly handle: FileDescriptor; readonly stats: Stats }
  | { readonly type: "folder" }
  | { readonly type: "missing" }
  | { readonly type: "refused"; readonly reason: string };

/** Opens a regular file at a real path; a link that was put above it meanwhile leads nowhere. Never waits for the other end of a pipe or for a device. The caller closes the handle. */
export async function openFile(path: string, attempts = 3): Promise<OpenedFile> {
  try {
    // Not by the thread pool: the path has just been resolved, and the trips there cost more than the calls.
    const before = refuseOddity(statSync(path), path);
    if (before !== undefined) return before;
    // The path is a real one: a link in its place was put there since.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);
    const descriptor = await retryOnResourceLimit(() => openSync(path, flags));
    const stats = fstatSync(descriptor);
    const after = refuseOddity(stats, path) ?? refuseOther(descriptor, path);
    if (after === undefined)
      return { type: "file", handle: { descriptor, [Symbol.dispose]: () => closeSync(descriptor) }, stats };
    closeSync(descriptor);
    // Another writer may have put a new file there in this moment.
    return after.type === "refused" && stats.isFile() && attempts > 1 ? openFile(path, attempts - 1) : after;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { type: "missing" };
    return { type: "refused", reason: fileTrouble(error, path) };
  }
}

export interface LoadedFile {
  readonly bytes: Buffer;
  readonly digest: string;
  readonly stats: Stats;
}

/** Reads an opened file whole; undefined when it is larger than can be held. */
export async function loadBytes(descriptor: number, stats: Stats): Promise<LoadedFile | undefined> {
  if (stats.size > maxLoadedBytes) return undefined;
  // One byte more than announced shows whether the file has grown meanwhile.
  const buffer = Buffer.alloc(stats.size + 1);
  let length = 0;
  while (length < buffer.length) {
    const bytesRead = await readAt(descriptor, buffer.subarray(length), length);
    length += bytesRead;
    // More was asked for than the file had when it was opened, and less was given: this is its end.
    if (bytesRead === 0 || length === stats.size) break;
  }
  if (length > stats.size) return loadBytes(descriptor, fstatSync(descriptor));
  const bytes = buffer.subarray(0, length);
  return { bytes, digest: digestOf(bytes), stats };
}

/** Reads into a buffer from a place in a file; gives how many bytes there were. */
export async function readAt(descriptor: number, buffer: Buffer, position: number): Promise<number> {
  if (buffer.length <= maxImmediateBytes) return readSync(descriptor, buffer, 0, buffer.length, position);
  return (await readInPool(descriptor, buffer, 0, buffer.length, position)).bytesRead;
}

const readInPool = promisify(read);

export function digestOf(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** Is for the content of a file too large to be read for its digest. */
export function fingerprintOf(stats: Stats): string {
  return `size:${stats.size}:${stats.mtimeMs}:${stats.ino}`;
}

function refuseOddity(stats: Stats, path: string): OpenedFile | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return { type: "folder" };
  return {
    type: "refused",
    reason: `${path} is ${fileTypeName(stats)}, not a regular file; it was not opened.`,
  };
}

function refuseOther(descriptor: number, path: string): OpenedFile | undefined {
  if (isOpenedAt(descriptor, path)) return undefined;
  return {
    type: "refused",
    reason: `${path} pointed to a different place when it was opened; nothing was read.`,
  };
}

function fileTypeName(stats: Stats): string {
  if (stats.isFIFO()) return "a named pipe";
  if (stats.isSocket()) return "a socket";
  return stats.isCharacterDevice() || stats.isBlockDevice() ? "a device" : "something special";
}

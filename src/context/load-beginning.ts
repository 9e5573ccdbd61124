// @io
import { constants, type Stats } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";

export interface Beginning {
  readonly stats: Stats;
  /** Absent for what is no regular file. */
  readonly content: Buffer | undefined;
}

/** The first bytes of a regular file. Rejects as the file system does; a pipe or device is never waited for. */
export async function loadBeginning(file: string, bytes: number): Promise<Beginning> {
  return loadOpened(file, bytes, 0);
}

/**
 * The same for a path whose links were followed before it was decided about: rejects with `EREPLACED` where a link has
 * taken the place of the file or of a folder on the way to it.
 */
export async function loadDecidedBeginning(realFile: string, bytes: number): Promise<Beginning> {
  const beginning = await loadOpened(realFile, bytes, constants.O_NOFOLLOW ?? 0).catch((error: unknown) => {
    throw isLoop(error) ? replaced() : error;
  });
  const [real, now] = await Promise.all([realpath(realFile), stat(realFile)]);
  const { ino, dev } = beginning.stats;
  if (real !== realFile || now.ino !== ino || now.dev !== dev) throw replaced();
  return beginning;
}

function replaced(): Error {
  return Object.assign(new Error("it was replaced while it was read"), { code: "EREPLACED" });
}

function isLoop(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ELOOP";
}

async function loadOpened(file: string, bytes: number, flags: number): Promise<Beginning> {
  // Opening a pipe would otherwise wait until somebody writes to it.
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | flags);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return { stats, content: undefined };
    const most = Math.min(stats.size + 1, bytes);
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(most), { length: most });
    return { stats, content: buffer.subarray(0, bytesRead) };
  } finally {
    await handle.close();
  }
}

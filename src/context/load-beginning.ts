import { constants, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** The first bytes of a regular file. Rejects as the file system does; a pipe or device is never waited for. */
export async function loadBeginning(
  file: string,
  bytes: number,
): Promise<{ readonly stats: Stats; readonly content: Buffer | undefined }> {
  // Opening a pipe would otherwise wait until somebody writes to it.
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
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

import { closeSync, openSync, readSync, utimesSync, writeSync } from "node:fs";

/** How often the owner of a lock gives a sign of life. */
export const beatMs = 3_000;

/**
 * Renews the time of a lock file while its owner lives, without keeping the process alive. A lock that somebody else has
 * taken over is left alone: it is another file by then, and the first byte is only ever written into the own one.
 */
export function startHeartbeat(lockFile: string, text: string, everyMs = beatMs): { stop(): void } {
  const timer = setInterval(() => {
    if (beat(lockFile, text) === "lost") clearInterval(timer);
  }, everyMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Writing gives the file the time of the file system; where nothing can be opened, this machine's time has to do. */
export function beat(lockFile: string, text: string): "beaten" | "lost" {
  try {
    const descriptor = openSync(lockFile, "r+");
    try {
      const bytes = Buffer.alloc(Buffer.byteLength(text) + 1);
      const length = readSync(descriptor, bytes, 0, bytes.length, 0);
      if (bytes.toString("utf8", 0, length) !== text) return "lost";
      writeSync(descriptor, text.slice(0, 1), 0);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    touch(lockFile);
  }
  return "beaten";
}

function touch(lockFile: string): void {
  try {
    const now = new Date();
    utimesSync(lockFile, now, now);
  } catch {
    // It is gone, or the disk is: the next write of its owner says so.
  }
}

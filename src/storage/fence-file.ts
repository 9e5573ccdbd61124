import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { errorCode, fileError } from "./file-error.ts";

/**
 * Puts a copy in the place of a file whose former writer may still live. What that one writes from now on goes into the
 * file it has open, which has no name any more, and never behind the lines of the new owner.
 */
export function fenceFile(file: string): void {
  const copy = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const old = openSync(file, "r");
    try {
      copyFileSync(file, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      const own = openSync(copy, "r+");
      try {
        fsyncSync(own);
        renameSync(copy, file);
        // The former writer may have been at it while the copy was made; later it can only write for itself.
        copyRest(old, own);
      } finally {
        closeSync(own);
      }
    } finally {
      closeSync(old);
    }
  } catch (error) {
    if (errorCode(error) === "ENOENT") return;
    throw fileError("take over", file, error);
  } finally {
    rmSync(copy, { force: true });
  }
}

function copyRest(from: number, to: number): void {
  const chunk = Buffer.alloc(64 * 1024);
  for (let at = fstatSync(to).size; ; ) {
    const read = readSync(from, chunk, 0, chunk.length, at);
    if (read === 0) return;
    for (let done = 0; done < read; ) done += writeSync(to, chunk, done, read - done, at + done);
    at += read;
  }
}

import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { errorCode, fileError } from "../foundation/file-error.ts";

interface WholeFileOptions {
  /** Waits until the bytes are on the disk itself, for files that must outlive a power cut. */
  readonly durable?: boolean;
}

/** Makes a file appear with its whole text at one moment, for this user only; a file that is already there is left alone. */
export function createWholeFile(
  file: string,
  text: string,
  options: WholeFileOptions = {},
): "created" | "exists" {
  return throughTemporary(file, text, options, (temporary) => {
    try {
      linkSync(temporary, file);
      return "created";
    } catch (error) {
      if (errorCode(error) === "EEXIST") return "exists";
      if (!linkless.has(errorCode(error) ?? "")) throw error;
    }
    if (existsSync(file)) return "exists";
    renameSync(temporary, file);
    return "created";
  });
}

/** Puts a new text in the place of whatever the file holds, in one step. */
export function replaceWholeFile(file: string, text: string, options: WholeFileOptions = {}): void {
  throughTemporary(file, text, options, (temporary) => renameSync(temporary, file));
}

/** File systems without hard links say so in different ways. */
const linkless = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EINVAL", "EMLINK"]);

function throughTemporary<Result>(
  file: string,
  text: string,
  { durable = false }: WholeFileOptions,
  place: (temporary: string) => Result,
): Result {
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const descriptor = openSync(temporary, "wx", 0o600);
    try {
      writeFileSync(descriptor, text);
      if (durable) fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    const placed = place(temporary);
    if (durable) syncFolder(dirname(file));
    return placed;
  } catch (error) {
    throw fileError("write", file, error);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** The name of a new file is an entry of its folder, and lasts when that is on the disk too. */
function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

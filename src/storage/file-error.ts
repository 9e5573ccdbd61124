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
import { isRetinueError, RetinueError } from "../foundation/retinue-error.ts";

/** Turns an error of the file system into a RetinueError that says which deed failed on which file, and what to do. */
export function fileError(deed: string, file: string, error: unknown): RetinueError {
  if (isRetinueError(error)) return error;
  const known = kinds.get(errorCode(error) ?? "");
  const detail = error instanceof Error ? error.message : String(error);
  if (known === undefined)
    return new RetinueError("file-error", `Could not ${deed} ${file}: ${detail}.`, { cause: error });
  return new RetinueError(known.code, `Could not ${deed} ${file}: ${known.reason}.`, {
    advice: known.advice,
    cause: error,
  });
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

interface Kind {
  readonly code: string;
  readonly reason: string;
  readonly advice: string;
}

const full: Kind = {
  code: "disk-full",
  reason: "there is no space left on the disk, or your share of it is used up",
  advice: "Free some space, then continue; everything written before is still there.",
};
const noAccess: Kind = {
  code: "no-access",
  reason: "this user may not write or read there",
  advice: "Check the owner and the permissions of the file and of its folder.",
};
const notAFile: Kind = {
  code: "not-a-file",
  reason: "something else than an ordinary file or folder is at that path",
  advice: "Move away what is there.",
};
const tooManyOpen: Kind = {
  code: "too-many-open-files",
  reason: "too many files are open",
  advice: "Raise the limit of open files (ulimit -n), or run fewer agents at a time.",
};

const kinds: ReadonlyMap<string, Kind> = new Map([
  ["ENOSPC", full],
  ["EDQUOT", full],
  [
    "EROFS",
    {
      code: "read-only-disk",
      reason: "the file system is mounted read-only",
      advice:
        "Set CLAUDE_CONFIG_DIR to a folder that can be written, or keep no transcript (--no-session-persistence).",
    },
  ],
  ["EACCES", noAccess],
  ["EPERM", noAccess],
  ["EISDIR", notAFile],
  ["ENOTDIR", notAFile],
  ["EEXIST", notAFile],
  ["ELOOP", notAFile],
  [
    "EFBIG",
    {
      code: "file-too-large",
      reason: "the file would grow past the size that is allowed",
      advice: "Continue in a new session, or raise the limit of file sizes (ulimit -f).",
    },
  ],
  ["ENOENT", { code: "file-missing", reason: "it does not exist", advice: "Check the path." }],
  ["EMFILE", tooManyOpen],
  ["ENFILE", tooManyOpen],
  [
    "ENAMETOOLONG",
    { code: "path-too-long", reason: "the path is too long", advice: "Use a shorter folder." },
  ],
]);

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

import { isRetinueError, RetinueError } from "./retinue-error.ts";

/** Turns an error of the file system into a RetinueError that names the operation that failed, the file, and what to do. */
export function fileError(operation: string, file: string, error: unknown): RetinueError {
  if (isRetinueError(error)) return error;
  const known = kinds.get(errorCode(error) ?? "");
  const detail = error instanceof Error ? error.message : String(error);
  if (known === undefined)
    return new RetinueError("file-error", `Could not ${operation} ${file}: ${detail}.`, { cause: error });
  return new RetinueError(known.code, `Could not ${operation} ${file}: ${known.reason}.`, {
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
  reason: "the disk is full, or your quota is used up",
  advice: "Free some space, then continue; everything written before is still there.",
};
const noAccess: Kind = {
  code: "no-access",
  reason: "this user has no permission to read or write there",
  advice: "Check the owner and the permissions of the file and of its folder.",
};
const notAFile: Kind = {
  code: "not-a-file",
  reason: "something other than a regular file or folder is at that path",
  advice: "Move it out of the way.",
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
      advice: "Set CLAUDE_CONFIG_DIR to a writable folder, or keep no transcript (--no-session-persistence).",
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
      reason: "the file would exceed the allowed size",
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

import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isRecord } from "../foundation/json-record.ts";
import { livenessOf, type ProcessIdentity, thisProcess } from "./process-identity.ts";

/** How half-written files beside those of the user are called, so that nothing else is ever taken for one. */
export function temporaryName(name: string): string {
  return `.${name.slice(0, 60)}.${randomBytes(6).toString("hex")}.tmp`;
}

const temporaryPattern = /^\..{1,60}\.[0-9a-f]{12}\.tmp$/;

/** Notes that a half-written file is about to be somewhere; gives back how to forget it. */
export type NoteTemporary = (path: string) => () => void;

/**
 * Notes half-written files in a folder, so that they can be removed when this process dies before they are done. A note
 * that cannot be written does not stop the work.
 */
export function createTemporaryNotes(directory: string): NoteTemporary {
  let own: ProcessIdentity | undefined;
  return (path) => {
    const note = join(directory, `${randomBytes(6).toString("hex")}.json`);
    try {
      if (own === undefined) mkdirSync(directory, { recursive: true, mode: 0o700 });
      own ??= thisProcess();
      writeFileSync(note, JSON.stringify({ ...own, path }), { flag: "wx", mode: 0o600 });
    } catch {
      own = undefined;
      return () => undefined;
    }
    return () => rmSync(note, { force: true });
  };
}

/** No write takes this long; for processes that cannot be seen from here. */
const timeoutMs = 10 * 60_000;

/** Removes what processes that are gone had half written; gives the files. With `dryRun` it only reports. */
export function removeTemporaries(
  directory: string,
  { now, dryRun }: { readonly now: number; readonly dryRun: boolean },
): readonly string[] {
  return namesIn(directory).flatMap((name) => {
    const note = join(directory, name);
    try {
      const left = readNote(readFileSync(note, "utf8"));
      const age = now - statSync(note).mtimeMs;
      if (left === undefined ? age < timeoutMs : !isLeft(left.owner, age)) return [];
      const isThere = left !== undefined && isTemporary(left.path);
      if (dryRun) return isThere ? [left.path] : [];
      if (isThere) rmSync(left.path, { force: true });
      rmSync(note, { force: true });
      return isThere ? [left.path] : [];
    } catch {
      // What cannot be read or removed today is tried again the next time.
      return [];
    }
  });
}

function isLeft(owner: ProcessIdentity, age: number): boolean {
  const liveness = livenessOf(owner);
  return liveness === "gone" || (liveness === "unknown" && age > timeoutMs);
}

/** Only an ordinary file with the name that such files are given. */
function isTemporary(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  return temporaryPattern.test(basename(path)) && status?.isFile() === true;
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((name) => /^[0-9a-f]{12}\.json$/.test(name));
  } catch {
    return [];
  }
}

function readNote(text: string): { readonly owner: ProcessIdentity; readonly path: string } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value)) return undefined;
    const { pid, machine, started, path } = value;
    if (typeof pid !== "number" || typeof machine !== "string" || typeof started !== "string")
      return undefined;
    return typeof path === "string" ? { owner: { pid, machine, started }, path } : undefined;
  } catch {
    return undefined;
  }
}

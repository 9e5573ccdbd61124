// @io

import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { findRealPath } from "@retinue/base/foundation/find-real-path.ts";
import { createKeyedLock } from "@retinue/base/foundation/keyed-lock.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { isInside } from "./resolve-workspace-path.ts";

/** What one agent knows of a file: the content it saw last, by digest, so that an edit is never made on a stale base. */
export interface SeenFile {
  readonly digest: string;
  readonly mtimeMs: number;
  /** The agent saw only a part of the file. */
  readonly partial: boolean;
  /** Which lines were seen of a file that was read in pieces, first and last, in order and apart. */
  readonly lines?: readonly (readonly [first: number, last: number])[];
}

interface FileChange {
  readonly agent: { readonly id: string; readonly name: string };
  readonly digest: string;
}

/** Shared by all agents of a session for `changed`, private to each for `seen`. Keys are real paths. */
export interface FileLedger {
  seen(path: string): SeenFile | undefined;
  noteSeen(path: string, file: SeenFile): void;
  /** Who of this session wrote the file last. */
  lastChange(path: string): FileChange | undefined;
  noteChange(path: string, change: FileChange): void;
  /** Runs one change of a path at a time among all agents of the session. */
  exclusively?<T>(path: string, signal: AbortSignal, change: () => Promise<T>): Promise<T>;
}

interface SessionFiles {
  /** A ledger of its own for each agent, over one common record of changes. */
  forAgent(): FileLedger;
}

export function createSessionFiles(): SessionFiles {
  const changes = new Map<string, FileChange>();
  const lock = createKeyedLock();
  return {
    forAgent() {
      const seen = new Map<string, SeenFile>();
      return {
        seen: (path) => seen.get(path),
        noteSeen: (path, file) => void seen.set(path, file),
        lastChange: (path) => changes.get(path),
        noteChange: (path, change) => void changes.set(path, change),
        exclusively: lock.hold,
      };
    },
  };
}

type Lines = readonly (readonly [first: number, last: number])[];

/** What an agent knows of a file after reading some of its lines; pieces of the same content add up. */
export function addSeenLines(
  before: SeenFile | undefined,
  read: { readonly digest: string; readonly mtimeMs: number },
  piece: { readonly first: number; readonly last: number; readonly total: number },
): SeenFile {
  const { digest, mtimeMs } = read;
  const same = before !== undefined && before.digest === digest;
  if (same && !before.partial) return { digest, mtimeMs, partial: false };
  const lines = joinLines([...(same ? (before.lines ?? []) : []), [piece.first, piece.last]]);
  const [only] = lines;
  const whole = lines.length === 1 && only !== undefined && only[0] <= 1 && only[1] >= piece.total;
  return whole ? { digest, mtimeMs, partial: false } : { digest, mtimeMs, partial: true, lines };
}

interface BaseQuestion {
  /** As the agent knows it, for messages. */
  readonly path: string;
  readonly realPath: string;
  /** The digest of what is in the file now. */
  readonly digest: string;
  readonly ledger: FileLedger;
  readonly agentId: string;
  /** A change that replaces all of a file must have seen all of it. */
  readonly whole: boolean;
}

/** Why a file may not be changed on what the agent knows of it, or undefined when it may. */
export function refuseBase({
  path,
  realPath,
  digest,
  ledger,
  agentId,
  whole,
}: BaseQuestion): string | undefined {
  const seen = ledger.seen(realPath);
  if (seen === undefined) return `${path} exists and was not read yet. Read it first, then make the change.`;
  if (seen.digest !== digest) return `${path} ${whoChanged(ledger.lastChange(realPath), digest, agentId)}`;
  if (whole && seen.partial) {
    return `Only a part of ${path} was read, and writing replaces all of it. Read the rest, use Edit for the part that is to change, or remove the file first if nothing of it is to stay.`;
  }
  return undefined;
}

function whoChanged(change: FileChange | undefined, digest: string, agentId: string): string {
  const advice = "Read it again and make the change on what is there now.";
  if (change === undefined || change.digest !== digest || change.agent.id === agentId) {
    return `changed on disk since it was read. ${advice}`;
  }
  return `was changed by the agent ${change.agent.name} (${change.agent.id}) since you read it. ${advice}`;
}

function joinLines(lines: Lines): Lines {
  const joined: [number, number][] = [];
  for (const [first, last] of lines.toSorted((a, b) => a[0] - b[0])) {
    const previous = joined.at(-1);
    if (previous !== undefined && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** Lets one process at a time change a file, where several are expected to. Keys are real paths. */
export type WriteInTurn = <T>(path: string, signal: AbortSignal, change: () => Promise<T>) => Promise<T>;

interface WriteInTurnOptions {
  /** The files below these folders are changed in turn; all others immediately. */
  readonly roots: readonly string[];
  /** Called before each change in one of them. */
  readonly prepare?: (path: string) => Promise<void>;
  readonly timeoutMs?: number;
}

/** The folder of locks in each root. Agents cannot have this name. */
export const locksFolder = ".locks";

export function createWriteInTurn({ roots, prepare, timeoutMs = 15_000 }: WriteInTurnOptions): WriteInTurn {
  return async (path, signal, change) => {
    const root = await findRoot(path, roots);
    if (root === undefined) return change();
    await prepare?.(path);
    const lock = await waitForLock(await makeLockFile(root, path), { path, signal, timeoutMs });
    try {
      return await change();
    } finally {
      lock.release();
    }
  };
}

async function findRoot(path: string, roots: readonly string[]): Promise<string | undefined> {
  for (const root of roots) {
    const real = await findRealPath(root);
    if (isInside(path, [real])) return real;
  }
  return undefined;
}

/** Beside what it locks, so that all who can write there meet, whatever their own configuration. */
async function makeLockFile(root: string, path: string): Promise<string> {
  const folder = join(root, locksFolder);
  await mkdir(folder, { recursive: true });
  if ((await findRealPath(folder)) !== folder)
    throw new RetinueError("locks-elsewhere", `${folder} is a link, so nothing in ${root} was changed.`);
  await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" }).catch((error) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  });
  return join(folder, createHash("sha256").update(relative(root, path)).digest("hex").slice(0, 32));
}

async function waitForLock(
  file: string,
  {
    path,
    signal,
    timeoutMs,
  }: { readonly path: string; readonly signal: AbortSignal; readonly timeoutMs: number },
) {
  for (let waited = 0, delay = 4; ; delay = Math.min(delay * 2, 64)) {
    signal.throwIfAborted();
    const answer = takeOwnerLock(file);
    if (answer.type === "taken") return answer.lock;
    if (waited >= timeoutMs) {
      const by = answer.by === undefined ? "another process" : `the process ${answer.by.pid}`;
      throw new RetinueError("file-busy", `${path} is being changed by ${by}; try again later.`);
    }
    await pause(delay, undefined, { signal });
    waited += delay;
  }
}

import { createKeyedLock } from "../foundation/keyed-lock.ts";

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

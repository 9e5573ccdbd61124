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

export interface FileChange {
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

export interface SessionFiles {
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

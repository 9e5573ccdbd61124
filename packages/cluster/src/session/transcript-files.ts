// @io
import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import type { JsonValue } from "../store.ts";

/** A piece of a session's files, as it is kept in the agent's log. */
export interface FilePiece {
  readonly type: "file";
  /** Below the folder of transcripts. */
  readonly path: string;
  /** Where the text begins in a file that only grows; absent where the text is the whole file. */
  readonly from?: number;
  readonly text: string;
}

/**
 * The files of a session and its children for one activation, in a folder of its own: a worker that was frozen, or another one of the
 * same user, has other files. The log has the truth; what a killed worker leaves is removed with its folder by the next one.
 */
export interface TranscriptFiles {
  readonly folder: string;
  /** Writes what the log has. */
  restore(entries: readonly JsonValue[]): void;
  /** What was written since the last time. */
  takePendingMessages(): readonly FilePiece[];
  remove(): void;
}

export function createTranscriptFiles(root: string, sessionId: string): TranscriptFiles {
  const transcripts = join(root, `transcripts-${randomUUID()}`);
  const lengths = new Map<string, number>();
  const versions = new Map<string, string>();
  return {
    folder: transcripts,
    remove() {
      try {
        rmSync(transcripts, { recursive: true, force: true, maxRetries: 3 });
      } catch {
        // The folder of the process is removed with it, or by the next worker.
      }
    },
    restore(entries) {
      mkdirSync(sessionFiles(transcripts, sessionId).directory, { recursive: true, mode: 0o700 });
      for (const [path, text] of joinPieces(entries.flatMap(readPiece), sessionId)) {
        const file = join(transcripts, path);
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, text, { mode: 0o600 });
        if (path.endsWith(".jsonl")) lengths.set(path, Buffer.byteLength(text));
        else versions.set(path, versionOf(file));
      }
    },
    takePendingMessages() {
      return listFiles(transcripts, sessionId).flatMap((path): FilePiece[] => {
        const file = join(transcripts, path);
        if (path.endsWith(".jsonl")) {
          const from = lengths.get(path) ?? 0;
          const text = readFrom(file, from);
          if (text === "") return [];
          lengths.set(path, from + Buffer.byteLength(text));
          return [{ type: "file", path, from, text }];
        }
        const version = versionOf(file);
        if (version === versions.get(path)) return [];
        versions.set(path, version);
        const bytes = readFileSync(file);
        return isUtf8(bytes) ? [{ type: "file", path, text: bytes.toString("utf8") }] : [];
      });
    },
  };
}

/** Transcripts, what is known of children, and results too long for the conversation; nothing that belongs to a process. */
function listFiles(transcripts: string, sessionId: string): readonly string[] {
  const found: string[] = [];
  if (statSync(join(transcripts, `${sessionId}.jsonl`), { throwIfNoEntry: false })?.isFile() === true)
    found.push(`${sessionId}.jsonl`);
  const below = (folder: string, isWanted: (name: string) => boolean): void => {
    for (const name of namesIn(join(transcripts, sessionId, folder)))
      if (isWanted(name)) found.push(`${sessionId}/${folder}/${name}`);
  };
  below("subagents", (name) => /\.(jsonl|meta\.json)$/.test(name));
  below("tool-results", (name) => !name.startsWith("."));
  return found;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw fileError("read the folder", folder, error);
  }
}

/** Whole lines only. */
function readFrom(file: string, from: number): string {
  const descriptor = openSync(file, "r");
  try {
    const bytes = Buffer.alloc(Math.max(0, statSync(file).size - from));
    const read = readSync(descriptor, bytes, 0, bytes.length, from);
    const end = bytes.subarray(0, read).lastIndexOf("\n") + 1;
    return bytes.toString("utf8", 0, end);
  } finally {
    closeSync(descriptor);
  }
}

function versionOf(file: string): string {
  const { size, mtimeMs } = statSync(file);
  return `${size} ${mtimeMs}`;
}

function readPiece(entry: JsonValue): readonly FilePiece[] {
  if (!isRecord(entry) || entry["type"] !== "file") return [];
  const { path, from, text } = entry;
  if (typeof path !== "string" || typeof text !== "string") return [];
  return [{ type: "file", path, text, ...(typeof from === "number" ? { from } : {}) }];
}

function joinPieces(pieces: readonly FilePiece[], sessionId: string): ReadonlyMap<string, string> {
  const whole = new Map<string, string>();
  for (const { path, from, text } of pieces) {
    // The log is written by workers, but a path is only ever used inside the session's own files.
    if (!isOwnPath(path, sessionId)) continue;
    whole.set(path, from === undefined || from === 0 ? text : `${whole.get(path) ?? ""}${text}`);
  }
  return whole;
}

function isOwnPath(path: string, sessionId: string): boolean {
  const rest = path.startsWith(sessionId) ? path.slice(sessionId.length) : "";
  return /^(\.jsonl|\/(subagents|tool-results)\/(?!\.)[^/\\\0]+)$/.test(rest);
}

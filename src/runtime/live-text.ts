// @io
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "../conversation/run-event.ts";
import { isRecord } from "../foundation/json-record.ts";
import type { SessionFiles } from "../journal/session-files.ts";

/**
 * What models of a session are writing right now, for viewers in other processes. A viewer keeps the file `attached` fresh; only
 * then the process that runs agents appends what it receives to a file of its own, for all agents together. Nothing of it is part
 * of the journal, and losing it loses nothing.
 */
export interface LiveText {
  readonly hear: (agentId: string, event: RunEvent) => void;
  close(): void;
}

/** A piece of an answer that is being written. `answer` counts the answers of an agent; a piece without text ends it. */
export interface LivePiece {
  readonly agentId: string;
  readonly answer: number;
  readonly text?: string;
  /** It is all that was written so far, not what comes next. */
  readonly isWhole?: true;
}

const flushMs = 20;
/** How often the marker of viewers is looked at while models write. */
const lookMs = 500;
const refreshMs = 2000;
const staleMs = 3 * refreshMs;
const maxFileBytes = 4_000_000;

export interface LiveFiles {
  readonly directory: string;
  readonly attached: string;
}

export function liveFiles({ directory }: Pick<SessionFiles, "directory">): LiveFiles {
  const folder = join(directory, "live");
  return { directory: folder, attached: join(folder, "attached") };
}

interface OpenAnswer {
  readonly answer: number;
  text: string;
}

export function createLiveText(files: LiveFiles, now: () => number = Date.now): LiveText {
  const open = new Map<string, OpenAnswer>();
  const counts = new Map<string, number>();
  const writer = createPieceWriter(files, { open, now });

  function begin(agentId: string): OpenAnswer {
    const answer = (counts.get(agentId) ?? 0) + 1;
    counts.set(agentId, answer);
    const known = { answer, text: "" };
    open.set(agentId, known);
    return known;
  }

  function end(agentId: string): void {
    const known = open.get(agentId);
    if (known === undefined) return;
    open.delete(agentId);
    writer.add({ agentId, answer: known.answer });
  }

  return {
    hear(agentId, event) {
      const isOver =
        event.type === "assistant-answered" || event.type === "answer-lost" || event.type === "run-ended";
      if (isOver) end(agentId);
      if (event.type !== "model-streamed") return;
      const streamed = event.event;
      if (streamed.type === "message-started" || streamed.type === "attempt-failed") end(agentId);
      if (streamed.type !== "text-delta") return;
      const known = open.get(agentId) ?? begin(agentId);
      known.text += streamed.text;
      writer.add({ agentId, answer: known.answer, text: streamed.text });
    },
    close: writer.close,
  };
}

/** Writes pieces to a file while somebody looks, several together; otherwise they are dropped. */
function createPieceWriter(
  files: LiveFiles,
  { open, now }: { readonly open: ReadonlyMap<string, OpenAnswer>; readonly now: () => number },
) {
  let pending: LivePiece[] = [];
  const isAttached = createViewerCheck(files, now);
  let timer: NodeJS.Timeout | undefined;
  let file: { readonly path: string; size: number } | undefined;
  let made = 0;

  function plan(): void {
    timer ??= setTimeout(flush, file === undefined ? lookMs : flushMs).unref();
  }

  /** A file that begins with all that is open, so that a viewer needs no other. */
  function begin(): void {
    drop();
    made += 1;
    file = { path: join(files.directory, `${process.pid}-${made}.jsonl`), size: 0 };
    pending = [...open].map(([agentId, { answer, text }]) => ({ agentId, answer, text, isWhole: true }));
  }

  function drop(): void {
    if (file !== undefined) rmSync(file.path, { force: true });
    file = undefined;
  }

  function flush(): void {
    timer = undefined;
    try {
      if (!isAttached()) drop();
      else if (file === undefined || file.size > maxFileBytes) begin();
      const text = pending.map(lineOf).join("");
      pending = [];
      if (file !== undefined && text !== "") {
        appendFileSync(file.path, text, { mode: 0o600 });
        file.size += text.length;
      }
    } catch {
      // A viewer that misses something sees the whole answer when it is in the transcript.
      file = undefined;
    }
    if (open.size > 0) plan();
  }

  return {
    add(piece: LivePiece): void {
      plan();
      if (file !== undefined) addPiece(pending, piece);
    },
    close(): void {
      clearTimeout(timer);
      drop();
      if (made > 0) removeFolder(files);
    },
  };
}

/** A viewer that still looks makes it again when the session is resumed. */
function removeFolder({ directory, attached }: LiveFiles): void {
  try {
    rmSync(attached, { force: true });
    rmdirSync(directory);
  } catch {
    // Another process writes there.
  }
}

/** Pieces of the same answer that follow each other are one. */
function addPiece(pieces: LivePiece[], piece: LivePiece): void {
  const last = pieces.at(-1);
  const joins = last?.agentId === piece.agentId && last.answer === piece.answer;
  if (joins && last.text !== undefined && piece.text !== undefined)
    pieces[pieces.length - 1] = { ...last, text: last.text + piece.text };
  else pieces.push(piece);
}

/** Whether somebody looks; the file is looked at now and then, not for every piece. */
function createViewerCheck({ attached }: LiveFiles, now: () => number): () => boolean {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let answer = false;
  return () => {
    if (now() - lookedAt < lookMs) return answer;
    lookedAt = now();
    const seen = statSync(attached, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    answer = now() - seen < staleMs;
    return answer;
  };
}

function lineOf({ agentId, answer, text, isWhole }: LivePiece): string {
  const parts = [agentId, answer, ...(text === undefined ? [] : [text]), ...(isWhole === true ? [true] : [])];
  return `${JSON.stringify(parts)}\n`;
}

/** A piece from a line; undefined where it is none. */
export function readLivePiece(line: string): LivePiece | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const [agentId, answer, text, isWhole]: readonly unknown[] = value;
  if (typeof agentId !== "string" || typeof answer !== "number") return undefined;
  return {
    agentId,
    answer,
    ...(typeof text === "string" ? { text } : {}),
    ...(isWhole === true ? { isWhole } : {}),
  };
}

interface Viewer {
  /** Whether a process has the session open; for one that has ended nothing is written. */
  readonly isLive: () => boolean;
  /** Called each time the folder is there to be watched. */
  readonly onAttach: () => void;
}

/** Asks the processes of a session for what their models write, until it is closed. */
export function attachViewer(files: LiveFiles, { isLive, onAttach }: Viewer): () => void {
  const touch = (): void => {
    try {
      if (!isLive()) return;
      mkdirSync(files.directory, { recursive: true, mode: 0o700 });
      writeFileSync(files.attached, "", { mode: 0o600, flag: "a" });
      utimesSync(files.attached, new Date(), new Date());
      removeLeftOvers(files);
    } catch {
      // A folder that cannot be written to has no live text.
      return;
    }
    onAttach();
  };
  touch();
  const timer = setInterval(touch, refreshMs).unref();
  return () => clearInterval(timer);
}

/** Files of processes that were killed. */
function removeLeftOvers({ directory }: LiveFiles): void {
  for (const name of readdirSync(directory)) {
    const pid = /^(\d+)-\d+\.jsonl$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(directory, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isRecord(error) && error["code"] === "EPERM";
  }
}

/** The events that `hear` needs. */
export const liveTextEvents: ReadonlySet<RunEvent["type"]> = new Set([
  "model-streamed",
  "assistant-answered",
  "answer-lost",
  "run-ended",
]);

// @io
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { readNewLines } from "@retinue/base/storage/read-lines.ts";
import { hasLiveChild } from "../../journal/has-live-child.ts";
import type { SessionFiles } from "../../journal/session-files.ts";
import { type LiveFiles, type LiveLine, type LivePiece, liveFiles, refreshMs } from "./live-text.ts";

/** Reads what models of a session write in other processes, which write it down for as long as this is open. */
export interface LiveTextReader extends Disposable {
  /** The text since the last time; the first time, of open answers, all the text before. */
  read(): Promise<readonly LivePiece[]>;
}

/** `onAttach` is called each time the folder is there to be watched. */
export function readLiveText(session: SessionFiles, onAttach: () => void = () => undefined): LiveTextReader {
  const files = liveFiles(session);
  const offsets = new Map<string, number>();
  const sort = createPieceSorter();
  const touch = (): void => {
    // For a session that has ended nothing is written.
    if (hasLiveAgent(session) && markAttached(files)) onAttach();
  };
  touch();
  const timer = setInterval(touch, refreshMs).unref();
  return {
    async read() {
      const names = (await readdir(files.directory).catch(() => [])).filter((name) =>
        name.endsWith(".jsonl"),
      );
      for (const name of offsets.keys()) if (!names.includes(name)) offsets.delete(name);
      const lines: ReadLine[] = [];
      for (const file of names) {
        const at = offsets.get(file) ?? 0;
        const read = await readNewLines(join(files.directory, file), at).catch(() => undefined);
        offsets.set(file, at + (read?.length ?? 0));
        lines.push(...(read?.values ?? []).flatMap(lineOf).map((line) => ({ ...line, file })));
      }
      return sort(lines, names);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

type ReadLine = LiveLine & { readonly file: string };

function lineOf({ agentId, answer, block, text, isWhole }: JsonRecord): readonly LiveLine[] {
  if (typeof agentId !== "string" || typeof answer !== "string" || typeof block !== "number") return [];
  return [
    {
      agentId,
      answer,
      block,
      ...(typeof text === "string" ? { text } : {}),
      ...(isWhole === true ? { isWhole } : {}),
    },
  ];
}

/**
 * Takes out what was passed on before, and answers that began and ended meanwhile: the transcript has them. An answer whose file is
 * gone has ended, unless the next file of its process has it.
 */
function createPieceSorter(): (lines: readonly ReadLine[], files: readonly string[]) => readonly LivePiece[] {
  interface Known {
    /** Of the last file that had something of it. */
    file: string;
    /** How much of each block was passed on. */
    readonly lengths: number[];
    readonly end: LivePiece;
  }
  const known = new Map<string, Known>();
  const keyOf = ({ agentId, answer }: LivePiece): string => JSON.stringify([agentId, answer]);

  function pass({ isWhole, file, ...piece }: ReadLine): readonly LivePiece[] {
    const { agentId, answer, block, text } = piece;
    const key = keyOf(piece);
    if (text === undefined) return known.delete(key) ? [piece] : [];
    const before = known.get(key);
    const entry = before ?? { file, lengths: [], end: { agentId, answer, block: 0 } };
    const passed = entry.lengths[block] ?? 0;
    const more = isWhole === true ? text.slice(passed) : text;
    entry.file = file;
    entry.lengths[block] = passed + more.length;
    known.set(key, entry);
    if (more === "") return [];
    return [{ ...piece, text: more, ...(before === undefined ? { isFirst: true } : {}) }];
  }

  return (lines, files) => {
    const ended = lines.filter(({ text }) => text === undefined).map(keyOf);
    const missed = new Set(ended.filter((key) => !known.has(key)));
    const pieces = lines.filter((line) => !missed.has(keyOf(line))).flatMap(pass);
    const gone = [...known].filter(([, { file }]) => !files.includes(file));
    for (const [key] of gone) known.delete(key);
    return [...pieces, ...gone.map(([, { end }]) => end)];
  };
}

/** Asks the processes of a session for what their models write; false where nothing can be written. */
function markAttached(files: LiveFiles): boolean {
  try {
    mkdirSync(files.directory, { recursive: true, mode: 0o700 });
    writeFileSync(files.attached, "", { mode: 0o600, flag: "a" });
    utimesSync(files.attached, new Date(), new Date());
    // Files of processes that were killed.
    const { directory } = files;
    for (const name of readdirSync(directory)) {
      const pid = /^(\d+)-\d+\.jsonl$/.exec(name)?.[1];
      if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(directory, name), { force: true });
    }
    return true;
  } catch {
    return false;
  }
}

/** Whether a process has the session or one of its children open. */
function hasLiveAgent({ transcript, subagents }: SessionFiles): boolean {
  return hasLiveOwner(transcript) || hasLiveChild({ subagents });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isRecord(error) && error["code"] === "EPERM";
  }
}

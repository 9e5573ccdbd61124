// @io
import { closeSync, createReadStream, mkdirSync, openSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { takeEnd, takeStart } from "../limit-text.ts";
import { createTerminalCleaner } from "../terminal-cleaner.ts";
import { pageLength, pageOf, type TextPage } from "../text-page.ts";

export interface CommandOutputOptions {
  /** Characters that a model may see. */
  readonly limit: number;
  /** Where the whole output goes when it is longer, or from the start when `fileFromStart`. */
  readonly file: string;
  readonly fileFromStart?: boolean;
  /** Bytes that the file may take. */
  readonly fileLimit?: number;
}

export interface CommandOutputView {
  /** Clean text within the limit: all of it, or its beginning and end with a note between. */
  readonly text: string;
  /** Characters written so far. */
  readonly length: number;
  /** Where the whole is, once there is a file. */
  readonly file?: string;
}

/** Takes the output of a command however long it is, in bounded memory. */
export interface CommandOutput {
  take(chunk: Buffer): void;
  view(): CommandOutputView;
  /** No more will come; closes the file. */
  end(): void;
}

const headShare = 0.4;

export function createCommandOutput(options: CommandOutputOptions): CommandOutput {
  const { limit } = options;
  const decoder = new StringDecoder("utf8");
  const cleaner = createTerminalCleaner();
  const file = createOutputFile(options.file, options.fileLimit ?? 64 * 1024 * 1024);
  let whole: string | undefined = "";
  let head = "";
  let tail = "";
  let length = 0;
  if (options.fileFromStart === true) file.write("");

  const add = (text: string) => {
    length += text.length;
    if (file.isOpen()) file.write(text);
    if (whole !== undefined && length <= limit) whole += text;
    else if (whole === undefined) tail = takeEnd(tail + text, limit);
    else {
      if (!file.isOpen()) file.write(whole + text);
      head = takeStart(whole + text, Math.ceil(limit * headShare));
      tail = takeEnd(whole + text, limit);
      whole = undefined;
    }
  };

  const view = () => {
    const pending = cleaner.pending();
    const total = length + pending.length;
    const place = file.isOpen() || file.isClosed() ? { file: options.file } : {};
    if (whole !== undefined && total <= limit) return { text: whole + pending, length: total, ...place };
    const start = whole === undefined ? head : takeStart(whole + pending, Math.ceil(limit * headShare));
    const end = takeEnd((whole ?? tail) + pending, limit - start.length);
    const omitted = total - start.length - end.length;
    const text = `${start}\n\n[… ${omitted} characters left out${file.note()} …]\n\n${end}`;
    return { text, length: total, ...place };
  };

  return {
    take: (chunk) => add(cleaner.take(decoder.write(chunk))),
    view,
    end() {
      add(cleaner.take(decoder.end()) + cleaner.takePending());
      file.close();
    },
  };
}

interface OutputFile {
  /** The first write makes the file. A disk that is full or closed to us is noted, never thrown. */
  write(text: string): void;
  close(): void;
  isOpen(): boolean;
  isClosed(): boolean;
  /** Where a reader finds the rest. */
  note(): string;
}

function createOutputFile(path: string, limit: number): OutputFile {
  let state: "none" | "open" | "closed" | "failed" = "none";
  let descriptor = -1;
  let room = limit;
  let diagnostic = "";
  const fail = (error: unknown) => {
    diagnostic = error instanceof Error ? error.message : String(error);
    state = "failed";
  };
  return {
    write(text) {
      if (state === "closed" || state === "failed") return;
      try {
        if (state === "none") {
          mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
          descriptor = openSync(path, "wx", 0o600);
          state = "open";
        }
        if (room > 0) room -= writeSync(descriptor, text);
      } catch (error) {
        if (state === "open") closeSync(descriptor);
        fail(error);
      }
    },
    close() {
      if (state !== "open") return;
      closeSync(descriptor);
      state = "closed";
    },
    isOpen: () => state === "open",
    isClosed: () => state === "closed",
    note() {
      if (state === "failed") return `; the whole could not be kept: ${diagnostic}`;
      return room > 0 ? `; all of it is in ${path}` : `; the first ${limit} bytes are in ${path}`;
    },
  };
}

const defaultLimit = 30_000;

/** What an earlier process kept of a command's output: all of it, or its beginning and end; empty where nothing is kept. */
export async function loadCommandOutput(file: string | undefined, limit = defaultLimit): Promise<string> {
  if (file === undefined) return "";
  const handle = await open(file).catch(() => undefined);
  if (handle === undefined) return "";
  try {
    const { size } = await handle.stat();
    const read = async (length: number, position: number): Promise<string> => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
      return buffer.toString("utf8", 0, bytesRead);
    };
    if (size <= limit) return await read(size, 0);
    const head = Math.ceil(limit * 0.4);
    const tail = limit - head;
    const [start, end] = [await read(head, 0), await read(tail, size - tail)];
    return `${start}\n\n[… ${size - limit} bytes left out; all of it is in ${file} …]\n\n${end}`;
  } catch {
    return "";
  } finally {
    await handle.close();
  }
}

/** The page of a text file that begins at an offset; the file may still grow, so its length is not reported. */
export async function loadTextPage(file: string, offset: number, length = pageLength): Promise<TextPage> {
  const start = Math.max(0, offset);
  let skipped = 0;
  let text = "";
  for await (const chunk of createReadStream(file, { encoding: "utf8" })) {
    const piece = String(chunk);
    const from = Math.min(piece.length, start - skipped);
    skipped += from;
    text += piece.slice(from);
    if (text.length > length) break;
  }
  const { text: shown, next } = pageOf(text, 0, length);
  return { text: shown, offset: skipped, next: next === undefined ? undefined : skipped + shown.length };
}

import { open } from "node:fs/promises";
import { fileError } from "../foundation/file-error.ts";
import { type JsonRecord, parseJsonRecord } from "../foundation/json-record.ts";
import { retryOnResourceLimit } from "../foundation/retry-on-resource-limit.ts";

export interface ReadLinesOptions {
  /** Reads only the lines that begin within the last so many bytes. */
  readonly maxBytes?: number;
}

export interface ParsedLines {
  readonly values: readonly JsonRecord[];
  /** Lines that are no JSON object. */
  readonly broken: number;
  /** The last line ends in its middle, as after a crash. */
  readonly torn: boolean;
}

export interface LinesRead extends ParsedLines {
  /** Bytes of the file when it was read; what `openAppendLog` takes as the expected length. */
  readonly length: number;
  /** Bytes at the beginning that were left out. */
  readonly skippedBytes: number;
}

/** Reads a file of JSON lines and takes what is whole; throws a RetinueError only when the file itself cannot be read. */
export async function readLines(
  file: string,
  { maxBytes = Number.POSITIVE_INFINITY }: ReadLinesOptions = {},
): Promise<LinesRead> {
  try {
    await using handle = await retryOnResourceLimit(() => open(file, "r"));
    const length = (await handle.stat()).size;
    const from = Math.max(0, length - maxBytes);
    // One byte earlier, to see whether a line begins exactly there.
    const start = from === 0 ? 0 : from - 1;
    const bytes = await readRange(handle, start, length);
    const skip = from === 0 ? 0 : endOfLine(bytes, 0);
    return { ...parseLines(bytes.subarray(skip)), length: start + bytes.length, skippedBytes: start + skip };
  } catch (error) {
    throw fileError("read", file, error);
  }
}

/** The lines that were added behind `start`, as far as they are whole; `length` is how many bytes they take. */
export async function readNewLines(
  file: string,
  start: number,
  { withLast = false }: { readonly withLast?: boolean } = {},
): Promise<ParsedLines & { readonly length: number }> {
  await using handle = await open(file, "r");
  const bytes = await readRange(handle, start, Math.max(start, (await handle.stat()).size));
  const whole = withLast ? bytes : bytes.subarray(0, bytes.lastIndexOf(lineFeed) + 1);
  return { ...parseLines(whole), length: whole.length };
}

/** Lines end with a line feed; the last may be without it and still be whole. */
export function parseLines(bytes: Buffer): ParsedLines {
  const values: JsonRecord[] = [];
  let broken = 0;
  let torn = false;
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(lineFeed, at);
    // A power cut can leave zeros in front of the line that was written next.
    const line = bytes.subarray(at, end === -1 ? bytes.length : end);
    let start = 0;
    while (line[start] === 0) start += 1;
    const text = line.toString("utf8", start).trim();
    at = end === -1 ? bytes.length : end + 1;
    if (text === "") continue;
    const value = parseJsonRecord(text);
    if (value !== undefined) values.push(value);
    else if (end === -1) torn = true;
    else broken += 1;
  }
  return { values, broken, torn };
}

const lineFeed = 0x0a;

function endOfLine(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(lineFeed, from);
  return end === -1 ? bytes.length : end + 1;
}

interface Readable {
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/** The bytes from `start` up to `end`, or fewer when the file was cut meanwhile. */
export async function readRange(handle: Readable, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(end - start);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

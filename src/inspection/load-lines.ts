import { open } from "node:fs/promises";
import type { JsonRecord } from "../foundation/json-value.ts";
import { errorCode, fileError } from "../storage/file-error.ts";
import { parseLines, readRange } from "../storage/read-lines.ts";

/** Reads a file of JSON lines in pieces, and the next time only what was added. */
export interface LineSource {
  /** Hands over each new line; `isGrowing` leaves an unfinished last line for the next time. */
  load(isGrowing: boolean): Promise<void>;
  readonly broken: number;
  readonly isTorn: boolean;
}

const lineFeed = 0x0a;
const pieceBytes = 8 * 1024 * 1024;

export function createLineSource(file: string, take: (record: JsonRecord) => void): LineSource {
  let at = 0;
  let broken = 0;
  let isTorn = false;

  const takeLines = (bytes: Buffer): void => {
    const lines = parseLines(bytes);
    broken += lines.broken;
    isTorn = lines.torn;
    for (const record of lines.values) take(record);
    at += bytes.length;
  };

  return {
    get broken() {
      return broken;
    },
    get isTorn() {
      return isTorn;
    },
    async load(isGrowing) {
      try {
        await using handle = await open(file, "r");
        const { size } = await handle.stat();
        for (let length = pieceBytes; at < size; ) {
          const bytes = await readRange(handle, at, Math.min(size, at + length));
          const whole = bytes.lastIndexOf(lineFeed) + 1;
          const isLast = bytes.length < length;
          if (whole > 0) takeLines(bytes.subarray(0, whole));
          if (isLast && whole < bytes.length && !isGrowing) takeLines(bytes.subarray(whole));
          if (isLast) return;
          // A line longer than a piece is read in a longer one.
          length = whole === 0 ? length * 2 : pieceBytes;
        }
      } catch (error) {
        if (errorCode(error) !== "ENOENT") throw fileError("read", file, error);
      }
    },
  };
}

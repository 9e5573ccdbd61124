export interface LineReader {
  /** False once a line has become longer than the limit; nothing more is read then. */
  push(chunk: Buffer): boolean;
}

/** Cuts bytes into lines. Each byte is looked at once, however small the pieces and long the lines are. */
export function createLineReader(limit: number, onLine: (line: string) => void): LineReader {
  let parts: Buffer[] = [];
  let size = 0;
  let isOver = false;
  return {
    push(chunk) {
      let rest = chunk;
      for (let end = rest.indexOf(0x0a); end !== -1 && !isOver; end = rest.indexOf(0x0a)) {
        parts.push(rest.subarray(0, end));
        const line = Buffer.concat(parts).toString("utf8");
        parts = [];
        size = 0;
        rest = rest.subarray(end + 1);
        onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
      }
      parts.push(rest);
      size += rest.length;
      isOver ||= size > limit;
      if (isOver) parts = [];
      return !isOver;
    },
  };
}

/** Keeps the end of what is written. */
export function createTail(limit: number): { push(chunk: Buffer): void; text(): string } {
  let kept = Buffer.alloc(0);
  return {
    push(chunk) {
      kept = Buffer.concat([kept, chunk.subarray(-limit)]).subarray(-limit);
    },
    text: () => kept.toString("utf8"),
  };
}

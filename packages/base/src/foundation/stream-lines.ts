import type { Readable } from "node:stream";

/**
 * Reads a stream line by line. When the signal is aborted it ends, even while it waits for a line that never comes. Only line
 * feeds end a line: JSON may hold the other characters that `readline` takes for the end of one.
 */
export async function* streamLines(
  stream: Readable,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<string, void> {
  const leave = (): void => void stream.destroy();
  signal.addEventListener("abort", leave, { once: true });
  const decoder = new TextDecoder();
  let partial: string[] = [];
  try {
    if (signal.aborted) return;
    for await (const chunk of stream) {
      const [first = "", ...more] = decoder.decode(chunk, { stream: true }).split("\n");
      partial.push(first);
      for (const next of more) {
        yield withoutReturn(partial.join(""));
        partial = [next];
      }
    }
  } catch {
    // A terminal that went away, or a stream that was let go, is the end of what it says.
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
  const last = partial.join("");
  if (last !== "" && !signal.aborted) yield withoutReturn(last);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

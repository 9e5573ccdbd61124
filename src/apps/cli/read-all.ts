import type { Readable } from "node:stream";
import { misuse } from "./session-options.ts";

/** Reads a stream to its end. A pipe that is open but silent for `patienceMs` counts as empty; after that it is let go. */
export async function readAll(
  stream: Readable,
  { limit, patienceMs }: { readonly limit: number; readonly patienceMs?: number },
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      if (patienceMs !== undefined) timer = setTimeout(resolve, patienceMs);
      stream.on("data", (chunk: Buffer) => {
        clearTimeout(timer);
        size += chunk.length;
        if (size > limit)
          reject(
            misuse(`What is piped in is larger than ${limit} bytes.`, "Name a file in the prompt instead."),
          );
        else chunks.push(chunk);
      });
      stream.on("end", resolve);
      stream.on("error", reject);
    });
  } finally {
    clearTimeout(timer);
    stream.destroy();
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Reads a stream line by line. When the signal is aborted it ends, even while it waits for a line that never comes. Only line
 * feeds end a line: JSON may hold the other characters that `readline` takes for the end of one.
 */
export async function* readLines(stream: Readable, signal: AbortSignal): AsyncGenerator<string, void> {
  const leave = (): void => void stream.destroy();
  signal.addEventListener("abort", leave, { once: true });
  const decoder = new TextDecoder();
  let begun: string[] = [];
  try {
    if (signal.aborted) return;
    for await (const chunk of stream) {
      const [first = "", ...more] = decoder.decode(chunk, { stream: true }).split("\n");
      begun.push(first);
      for (const next of more) {
        yield withoutReturn(begun.join(""));
        begun = [next];
      }
    }
  } catch {
    // A terminal that went away, or a stream that was let go, is the end of what it says.
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
  const last = begun.join("");
  if (last !== "" && !signal.aborted) yield withoutReturn(last);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

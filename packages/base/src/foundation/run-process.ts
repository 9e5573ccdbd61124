import { type ProcessEnding, type ProcessRequest, startProcess } from "./start-process.ts";

export interface RunRequest extends Omit<ProcessRequest, "onOutput"> {
  /** Bytes kept of each of stdout and stderr; what comes after is read and dropped. */
  readonly maxBytes?: number;
}

export interface ProcessResult extends ProcessEnding {
  readonly stdout: string;
  readonly stderr: string;
  /** Both, in the order in which they arrived. */
  readonly output: string;
  /** More was written than kept. */
  readonly truncated: boolean;
}

/** Runs a program to its end and keeps a bounded part of what it writes. Never rejects. */
export async function runProcess({ maxBytes = 1_000_000, ...request }: RunRequest): Promise<ProcessResult> {
  const kept: { readonly chunk: Buffer; readonly stream: "stdout" | "stderr" }[] = [];
  const room = { stdout: maxBytes, stderr: maxBytes };
  let truncated = false;
  const running = await startProcess({
    ...request,
    onOutput(chunk, stream) {
      const part = chunk.subarray(0, room[stream]);
      room[stream] -= part.length;
      truncated ||= part.length < chunk.length;
      if (part.length > 0) kept.push({ chunk: part, stream });
    },
  });
  const ending = await running.ended;
  const text = (wanted?: "stdout" | "stderr") =>
    Buffer.concat(
      kept.filter(({ stream }) => wanted === undefined || stream === wanted).map(({ chunk }) => chunk),
    ).toString("utf8");
  return { ...ending, stdout: text("stdout"), stderr: text("stderr"), output: text(), truncated };
}

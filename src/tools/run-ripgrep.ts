import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { groupWatchdog } from "../foundation/watch-groups.ts";

export interface RipgrepRequest {
  readonly arguments: readonly string[];
  /** Where it runs; globs are anchored here. */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly timeLimitMs: number;
  /** Takes output as it comes; `enough` ends the search. */
  readonly take: (text: string) => "more" | "enough";
  /** Another program to run instead of the one that comes with this package. */
  readonly program?: string;
}

export interface RipgrepEnding {
  /** `enough`: the taker ended it; `time`: it took too long and was ended; `unavailable`: it could not be started. */
  readonly type: "finished" | "enough" | "time" | "unavailable";
  /** 0: something was found, 1: nothing, 2: trouble; absent when it was ended. */
  readonly code?: number;
  /** What it complained about, shortened. */
  readonly errors: string;
}

/** Runs a search in a process group of its own and comes back only when that process is gone; throws when aborted. */
export async function runRipgrep(request: RipgrepRequest): Promise<RipgrepEnding> {
  const { signal, timeLimitMs, take } = request;
  signal.throwIfAborted();
  const program = request.program ?? (await findProgram());
  signal.throwIfAborted();
  const child = spawn(program, ["--no-config", ...request.arguments], {
    cwd: request.directory,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    windowsHide: true,
  });
  const watched = child.pid === undefined ? undefined : groupWatchdog.watch(child.pid);
  let ended: "enough" | "time" | "abort" | undefined;
  const end = (why: "enough" | "time" | "abort"): void => {
    if (ended !== undefined) return;
    ended = why;
    endGroup(child);
  };
  const onAbort = () => end("abort");
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => end("time"), timeLimitMs);
  try {
    const errors = collectErrors(child.stderr);
    feed(child.stdout, (text) => {
      if (ended === undefined && take(text) === "enough") end("enough");
    });
    const code = await closed(child);
    signal.throwIfAborted();
    if (typeof code === "string") return { type: "unavailable", errors: code };
    if (ended === "enough" || ended === "time") return { type: ended, errors: errors() };
    return { type: "finished", ...(code === null ? {} : { code }), errors: errors() };
  } finally {
    watched?.release();
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

type Search = ChildProcessByStdio<null, Readable, Readable>;

/** The exit code, or why there is none. */
function closed(child: Search): Promise<number | null | string> {
  return new Promise((resolve) => {
    child.once("error", ({ message }) => resolve(`ripgrep could not be started: ${message}.`));
    child.once("close", (code) => resolve(code));
  });
}

function feed(stream: Readable, take: (text: string) => void): void {
  const decoder = new StringDecoder("utf8");
  stream.on("data", (bytes: Buffer) => take(decoder.write(bytes)));
  stream.on("end", () => take(decoder.end()));
}

function collectErrors(stream: Readable): () => string {
  let text = "";
  feed(stream, (more) => {
    if (text.length < maxErrorText) text = (text + more).slice(0, maxErrorText);
  });
  return () => text;
}

function endGroup(child: Search): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

/** The binary for this machine comes inside a package; where that is missing, one on the PATH serves as well. */
async function findProgram(): Promise<string> {
  try {
    return (await import("@vscode/ripgrep")).rgPath;
  } catch {
    return "rg";
  }
}

const maxErrorText = 8000;

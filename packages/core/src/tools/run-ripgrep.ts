// @io
import type { ChildProcess } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { groupWatchdog, spawnProcess } from "@retinue/base/foundation/spawn-process.ts";
import { isOpenedAt } from "./is-opened-at.ts";

export interface RipgrepRequest {
  readonly arguments: readonly string[];
  /** Where it runs; globs are anchored here. */
  readonly directory: string;
  /** The folder is a real path that was judged: it is held open, so that a link in its place or above it is not followed. */
  readonly isJudged?: boolean;
  readonly signal: AbortSignal;
  readonly timeLimitMs: number;
  /** Takes output as it comes; `enough` ends the search. */
  readonly take: (text: string) => "more" | "enough";
  /** Bytes it may take for itself, where the system shows them; a gigabyte unless given. */
  readonly maxMemory?: number;
  /** Another program to run instead of the one that comes with this package. */
  readonly program?: string;
}

export interface RipgrepEnding {
  /**
   * `enough`: the taker ended it; `time`: it took too long and was ended; `killed`: another process ended it, such as the
   * system for want of memory; `unavailable`: it could not be started.
   */
  readonly type: "finished" | "enough" | "time" | "killed" | "unavailable";
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
  const held: HeldFolder | undefined =
    request.isJudged === true ? holdFolder(request.directory) : { directory: request.directory };
  if (held === undefined)
    return {
      type: "unavailable",
      errors: `${request.directory} pointed to a different place when it was opened; nothing was searched.`,
    };
  let child: ChildProcess;
  try {
    child = await spawnProcess(program, ["--no-config", ...request.arguments], {
      cwd: held.directory,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      windowsHide: true,
    });
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    return { type: "unavailable", errors: `ripgrep could not be started: ${reason}.` };
  } finally {
    // The process is in the folder by now.
    if (held.descriptor !== undefined) closeSync(held.descriptor);
  }
  const watched = child.pid === undefined ? undefined : groupWatchdog.watch(child.pid);
  let ended: "enough" | "time" | "abort" | "memory" | undefined;
  const end = (why: NonNullable<typeof ended>): void => {
    if (ended !== undefined) return;
    ended = why;
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      child.kill("SIGKILL");
    }
  };
  const onAbort = () => end("abort");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const timer = setTimeout(() => end("time"), timeLimitMs);
  const { maxMemory = 2 ** 30 } = request;
  const looks = setInterval(() => {
    if (child.pid !== undefined && memoryOf(child.pid) > maxMemory) end("memory");
  }, lookMs);
  try {
    const errors = collectErrors(child.stderr);
    feed(child.stdout, (text) => {
      if (ended === undefined && take(text) === "enough") end("enough");
    });
    const code = await closed(child);
    signal.throwIfAborted();
    if (ended === "enough" || ended === "time") return { type: ended, errors: errors() };
    if (ended === "memory") return { type: "killed", errors: tooMuchMemory };
    if (code === null)
      return {
        type: "killed",
        errors: `The search was cut short: ripgrep was killed by ${child.signalCode ?? "a signal"}. Narrow it, or try again.`,
      };
    return { type: "finished", code, errors: errors() };
  } finally {
    watched?.release();
    clearTimeout(timer);
    clearInterval(looks);
    signal.removeEventListener("abort", onAbort);
  }
}

const lookMs = 200;

/** It reads whole what ignore files lead to. */
const tooMuchMemory =
  "The search took too much memory and was ended. A .gitignore, .ignore or .rgignore in this folder, above it or below it may be a link to something endless such as /dev/zero; remove it, or search another folder.";

/** What a process holds that is no part of a file; 0 where the system does not show it. */
function memoryOf(pid: number): number {
  try {
    const kilobytes = /^RssAnon:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}

interface HeldFolder {
  readonly directory: string;
  readonly descriptor?: number;
}

/** The folder by a descriptor, where the system has names for those; undefined where another one is at its path. */
function holdFolder(directory: string): HeldFolder | undefined {
  if (process.platform === "win32") return { directory };
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  let descriptor: number;
  try {
    descriptor = openSync(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    // A folder may be entered without being listed; one that is a link or gone may not be searched.
    return error instanceof Error && "code" in error && error.code === "EACCES" ? { directory } : undefined;
  }
  if (!isOpenedAt(descriptor, directory)) {
    closeSync(descriptor);
    return undefined;
  }
  const name = `/proc/${process.pid}/fd/${descriptor}`;
  return { directory: existsSync(name) ? name : directory, descriptor };
}

/** The exit code; null where a signal ended it. */
function closed(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once("close", (code) => resolve(code)));
}

function feed(stream: Readable | null, take: (text: string) => void): void {
  const decoder = new StringDecoder("utf8");
  stream?.on("error", () => stream.destroy());
  stream?.on("data", (bytes: Buffer) => take(decoder.write(bytes)));
  stream?.on("end", () => take(decoder.end()));
}

function collectErrors(stream: Readable | null): () => string {
  let text = "";
  feed(stream, (more) => {
    if (text.length < maxErrorText) text = (text + more).slice(0, maxErrorText);
  });
  return () => text;
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

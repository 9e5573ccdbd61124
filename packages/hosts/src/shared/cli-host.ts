import type { Readable, Writable } from "node:stream";
import type { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** One of the two streams a command writes to. */
export interface CliOutput {
  /** With `over`, in the place of so many lines that were written last; only on a terminal. */
  write(text: string, options?: { readonly over?: number }): void;
  readonly isTerminal: boolean;
  /** Cells per line; absent when it is not known, as in a pipe. */
  readonly columns?: number;
  /** Lines of the terminal. */
  readonly rows?: number;
  readonly isColourAllowed: boolean;
  /** Aborted when the reader has gone away; what is written after that is lost. */
  readonly closed?: AbortSignal;
}

/** What is piped in. */
export interface CliInput {
  readonly isTerminal: boolean;
  /** Everything up to the end; with `timeoutMs`, nothing when nothing comes for so long. */
  readAll(options: { readonly limit: number; readonly timeoutMs?: number }): Promise<string>;
  /** Line by line; ends early, and lets the pipe go, when the signal is aborted. */
  lines(options: { readonly signal: AbortSignal }): AsyncIterable<string>;
}

/** All that the command line takes from the world around it. */
export interface CliHost {
  readonly stdout: CliOutput;
  readonly stderr: CliOutput;
  readonly stdin: CliInput;
  /** The bare streams, for a protocol that is spoken over them; opens stdin. */
  streams?(): { readonly input: Readable; readonly output: Writable };
  /**
   * Calls back at the first Ctrl+C, SIGTERM, SIGHUP or SIGQUIT instead of ending, with a Error `interrupted` that says which; who repeats
   * it ends the process. Returns how to forget it.
   */
  onInterrupt(listener: (reason: RetinueError) => void): () => void;
  /** Ends the process soon after its work, even where another process holds its output open and does not read it. */
  leaveSoon?(): void;
  /** Whether there is a person at a terminal who can answer. */
  readonly canAsk: boolean;
  /** One line of an answer, shown while it is written unless it is hidden; a Error `interrupted` when the person leaves instead. */
  ask(question: string, options?: { readonly isHidden?: boolean }): Promise<string>;
  /** Gives the terminal back after the last question. */
  endQuestions(): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The name of the worktree that the session works in, as `--worktree` takes it. */
  readonly worktree?: string;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly nodeVersion: string;
  /** The version of this package. */
  readonly version: string;
}

/** A program with its arguments, as a process is started. */
export interface Invocation {
  readonly file: string;
  readonly arguments: readonly string[];
  /** What the program reads from descriptor 4. */
  readonly sideInput?: Uint8Array;
}

export interface SandboxOptions {
  readonly signal: AbortSignal;
  /** The command as the model wrote it, for those that settings take out of the sandbox. */
  readonly command: string;
  /** Folders that may be written to; the first is the project. */
  readonly workingDirectories: readonly string[];
  /** The command may run because it only reads, so that it may write nothing but temporary files. */
  readonly readOnly?: boolean;
}

export type SandboxWrap =
  /** Start this instead, and call `ended` once nothing of it runs any more. */
  | { readonly type: "wrapped"; readonly invocation: Invocation; readonly ended: () => void }
  /** A setting says that this command runs without protection. */
  | { readonly type: "unprotected"; readonly note?: string }
  /** There is no protection, and nothing says that there need not be. */
  | { readonly type: "refused"; readonly reason: string };

/** Keeps what a command does to the world inside limits that the operating system enforces. */
export interface Sandbox {
  wrap(invocation: Invocation, options: SandboxOptions): Promise<SandboxWrap>;
}

/** One text that a shell reads as exactly this invocation. */
export function quoteInvocation({ file, arguments: words }: Invocation): string {
  return [file, ...words].map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");
}

import { execFile } from "node:child_process";
import { hardenedGit } from "../permissions/shell/hardened-git.ts";

export interface GitCall {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export type GitOutput =
  | { readonly type: "output"; readonly text: string; readonly isCut: boolean }
  | { readonly type: "absent" }
  | { readonly type: "late" }
  | { readonly type: "failed" };

const maxOutput = 1024 * 1024;

/** Nothing that a repository configures may run for a mere look at it, and no lock is taken. */
const carefulArguments = [...hardenedGit, "-c", "color.ui=false"];

/** Runs git for reading, with a limit in time and output. Never rejects. */
export function runGit(call: GitCall, parameters: readonly string[]): Promise<GitOutput> {
  const { directory, environment, timeoutMs, signal } = call;
  if (signal?.aborted === true) return Promise.resolve({ type: "failed" });
  const env = { ...environment, GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" };
  return new Promise((resolve) => {
    execFile(
      "git",
      [...carefulArguments, ...parameters],
      {
        cwd: directory,
        env,
        timeout: timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: maxOutput,
        windowsHide: true,
        ...(signal === undefined ? {} : { signal }),
      },
      (error, stdout) => resolve(outcome(error, stdout)),
    );
  });
}

function outcome(error: (Error & { code?: unknown; killed?: boolean }) | null, stdout: string): GitOutput {
  if (error === null) return { type: "output", text: stdout, isCut: false };
  if (error.code === "ENOENT") return { type: "absent" };
  if (error.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") {
    return { type: "output", text: stdout.slice(0, stdout.lastIndexOf("\n") + 1), isCut: true };
  }
  return { type: error.killed === true ? "late" : "failed" };
}

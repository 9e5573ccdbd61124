import { execFile } from "node:child_process";
import { isScarce, retryWhileScarce } from "../foundation/scarce.ts";
import { searchPathOutside } from "../foundation/search-path.ts";
import { hardenedGit } from "../permissions/shell/hardened-git.ts";

export interface GitCall {
  readonly directory: string;
  /** Programs below this folder are not taken for git. */
  readonly repository: string;
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
export async function runGit(call: GitCall, parameters: readonly string[]): Promise<GitOutput> {
  try {
    return await retryWhileScarce(() => runOnce(call, parameters));
  } catch {
    return { type: "failed" };
  }
}

/** Rejects only where the system has nothing to start it with. */
function runOnce(call: GitCall, parameters: readonly string[]): Promise<GitOutput> {
  const { directory, repository, environment, timeoutMs, signal } = call;
  if (signal?.aborted === true) return Promise.resolve({ type: "failed" });
  const env = {
    ...environment,
    PATH: searchPathOutside(environment["PATH"], [repository]),
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    LC_ALL: "C",
  };
  return new Promise((resolve, reject) => {
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
      (error, stdout) => (isScarce(error) ? reject(error) : resolve(outcome(error, stdout))),
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

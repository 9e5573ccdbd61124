import { spawn } from "node:child_process";

export interface Finished {
  readonly out: string;
  readonly err: string;
  /** Null where it took too long and was ended. */
  readonly code: number | null;
}

export interface ProgramOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Runs a program with nothing on stdin, in a process group that ends with it or at its limit. */
export function runProgram(
  file: string,
  words: readonly string[],
  { cwd, env, timeoutMs }: ProgramOptions,
): Promise<Finished> {
  const child = spawn(file, words, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const written = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    written.err += text;
  });
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => {
      endGroup(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ ...written, code: null });
    }, timeoutMs);
    child.on("error", (error) => {
      clearTimeout(limit);
      reject(error);
    });
    child.on("close", (code) => {
      clearTimeout(limit);
      endGroup(child.pid);
      resolve({ ...written, code });
    });
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // No one of the group is left.
  }
}

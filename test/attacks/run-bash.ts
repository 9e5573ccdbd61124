import type { Place } from "./fixture.ts";
import { runProgram } from "./run-program.ts";

export interface Ran {
  /** Both streams. */
  readonly text: string;
  readonly code: number | null;
}

/** Gives a script to bash as the Bash tool does: without start files and with nothing on stdin. */
export async function runBash(script: string, { environment, project }: Place, cwd = project): Promise<Ran> {
  const words = ["--norc", "--noprofile", "-c", script];
  const { out, err, code } = await runProgram("bash", words, { cwd, env: environment, timeoutMs: 10_000 });
  return { text: out + err, code };
}

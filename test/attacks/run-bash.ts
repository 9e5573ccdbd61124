import { spawn } from "node:child_process";
import type { Place } from "./fixture.ts";

export interface Ran {
  /** Both streams. */
  readonly text: string;
  readonly code: number | null;
}

/** Gives a script to bash as the Bash tool does: without start files and with nothing on stdin. */
export function runBash(script: string, { environment, project }: Place, cwd = project): Promise<Ran> {
  const child = spawn("bash", ["--norc", "--noprofile", "-c", script], {
    cwd,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 10_000,
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (more: string) => {
      text += more;
    });
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ text, code }));
  });
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { projectRoot } from "../project-files.ts";

export interface RunningProgram {
  readonly process: ChildProcess;
  readonly ended: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly output: string;
  }>;
}

const program = join(projectRoot, "bin/retinue.js");

/**
 * Starts the built command on the torture's model; `session` says which conversation it begins or continues with, `within`
 * is the beginning of a command line that runs the rest of it, such as one that makes a container.
 */
export function startProgram(
  { project, home }: { readonly project: string; readonly home: string },
  session: readonly string[],
  url: string,
  {
    within = [],
    environment = {},
  }: { readonly within?: readonly string[]; readonly environment?: Readonly<Record<string, string>> } = {},
): RunningProgram {
  const continues = session.includes("--resume") || session.includes("--continue");
  const prompt = continues ? "You were interrupted. Continue." : "Do all steps.";
  const own = [process.execPath, program, "-p", prompt, ...session];
  const line = [...within, ...own, "--output-format", "json", "--dangerously-skip-permissions"];
  const child = spawn(line[0] ?? "", line.slice(1), {
    cwd: project,
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "none",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (text: string): void => {
    output += text;
  };
  child.stdout.setEncoding("utf8").on("data", collect);
  child.stderr.setEncoding("utf8").on("data", collect);
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, output }));
  return { process: child, ended };
}

/** Returns as soon as the size was seen to have changed so many times and once more. */
export async function growth(size: () => number, times: number, signal: AbortSignal): Promise<void> {
  let left = times;
  let before = size();
  while (!signal.aborted) {
    const now = size();
    if (now !== before) {
      before = now;
      left -= 1;
      if (left < 0) return;
    }
    await wait(1);
  }
}

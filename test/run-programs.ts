import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { projectRoot } from "./project-files.ts";

export interface Program {
  readonly file: string;
  readonly cwd: string;
  readonly home: string;
}

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs with Node, one after the other in one process: loading the package takes longer than most of them. */
export async function runPrograms(
  programs: readonly Program[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<readonly Ended[]> {
  const folder = mkdtempSync(join(tmpdir(), "retinue-programs-"));
  try {
    const [given, taken] = [join(folder, "given.json"), join(folder, "taken.json")];
    writeFileSync(given, JSON.stringify(programs));
    const runner = join(projectRoot, "test/fixtures/run-programs.mjs");
    const child = spawn(process.execPath, [runner, given, taken], {
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 55_000,
    });
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close") as Promise<[number | null]>,
    ]);
    if (status === 0 && existsSync(taken)) return JSON.parse(readFileSync(taken, "utf8"));
    // One of them ended the process, or keeps it alive.
    return programs.map(() => ({ status: status === 0 ? null : status, stdout, stderr }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

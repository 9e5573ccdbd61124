import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileCount, fileName } from "./scripted-turns.ts";

/** A home of its own and a small, clean repository with files to read. */
export interface Workplace extends Disposable {
  readonly home: string;
  readonly project: string;
  /** Where a weighed process says what it took. */
  readonly usageFile: string;
  environment(url: string): Readonly<Record<string, string | undefined>>;
}

export function createWorkplace(): Workplace {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "retinue-bench-")));
  const project = join(home, "project");
  mkdirSync(project);
  for (let number = 0; number < fileCount; number += 1) {
    const line = `Line of file ${number}, with some words to read.\n`;
    writeFileSync(join(project, fileName(number)), line.repeat(8));
  }
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=bench", "-c", "user.email=bench@example.com", ...args], {
      cwd: project,
      stdio: "ignore",
    });
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  git("commit", "--quiet", "--message", "files");
  const usageFile = join(home, "usage.json");
  return {
    home,
    project,
    usageFile,
    environment: (url) => ({
      PATH: process.env["PATH"],
      HOME: home,
      BENCH_USAGE_FILE: usageFile,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "none",
    }),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

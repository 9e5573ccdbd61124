// @io
import { existsSync } from "node:fs";
import { mkdir, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { startProcess } from "@retinue/base/foundation/start-process.ts";
import type { HookRunner } from "../../hooks/hook-runner.ts";

export interface EnvironmentFileOptions {
  readonly file: string;
  readonly environment: () => Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  /** Hears what the file has set. */
  readonly take: (variables: ReadonlyMap<string, string>) => void;
  readonly report: (text: string) => void;
}

/** The same hooks, whose `SessionStart` may leave variables for later commands in a file, written as a shell reads them. */
export function withEnvironmentFile(runner: HookRunner, options: EnvironmentFileOptions): HookRunner {
  const complain = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error);
    options.report(`CLAUDE_ENV_FILE of SessionStart hooks could not be used: ${why}`);
  };
  return {
    ...runner,
    async fire(event, payload, fired) {
      if (event !== "SessionStart" || !runner.receives(event)) return runner.fire(event, payload, fired);
      await prepare(options.file).catch(complain);
      const outcome = await runner.fire(event, payload, fired);
      await takeVariables(options, fired.signal).catch(complain);
      return outcome;
    },
  };
}

/** Made anew, so that nothing of an earlier run or of anybody else is taken. */
async function prepare(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await rm(file, { force: true });
  await writeFile(file, "", { mode: 0o600, flag: "wx" });
}

async function takeVariables(options: EnvironmentFileOptions, signal: AbortSignal): Promise<void> {
  const { file } = options;
  try {
    const { size } = await stat(file);
    if (size > largestFile)
      throw new RetinueError("environment-file-large", `it has more than ${largestFile} bytes`);
    if (size > 0) options.take(await readVariables(options, signal));
  } finally {
    await rm(file, { force: true });
    // Where nothing else is kept of the session, nothing of this stays either.
    await rmdir(dirname(file)).catch(() => undefined);
  }
}

const largestFile = 256 * 1024;
const limitMs = 10_000;
const bashes = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"];

/** A shell reads the file, so that it may build on what is set: `export PATH="$PATH:./bin"`. */
async function readVariables(
  { file, environment, directory }: EnvironmentFileOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const bash = bashes.find((path) => existsSync(path));
  if (bash === undefined) throw new RetinueError("no-bash", "it needs bash, and there is none.");
  const before = new Map(
    Object.entries(environment()).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const chunks: Buffer[] = [];
  const running = await startProcess({
    file: bash,
    arguments: [
      "--norc",
      "--noprofile",
      "-c",
      'set -a; . "$1" >/dev/null 2>&1; exec /usr/bin/env -0',
      "bash",
      file,
    ],
    directory,
    environment: Object.fromEntries(before),
    signal,
    timeLimitMs: limitMs,
    onOutput: (chunk, stream) => void (stream === "stdout" && chunks.push(chunk)),
  });
  const { exitCode, timedOut, notStarted } = await running.ended;
  if (timedOut)
    throw new RetinueError("environment-file-slow", `reading it took more than ${limitMs / 1000} s.`);
  if (exitCode !== 0)
    throw new RetinueError("environment-file-failed", notStarted ?? "the shell could not read it.");
  return new Map([...parse(chunks)].filter(([name, value]) => !isShells(name) && before.get(name) !== value));
}

function* parse(chunks: readonly Buffer[]): Generator<readonly [string, string]> {
  for (const entry of Buffer.concat(chunks).toString("utf8").split("\0")) {
    const at = entry.indexOf("=");
    if (at > 0) yield [entry.slice(0, at), entry.slice(at + 1)];
  }
}

/** What a shell sets by itself. */
function isShells(name: string): boolean {
  return /^(?:_|PWD|OLDPWD|SHLVL|BASH.*|PPID|UID|EUID|SHELLOPTS)$/.test(name);
}

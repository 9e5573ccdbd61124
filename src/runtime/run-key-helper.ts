import { RetinueError } from "../foundation/retinue-error.ts";
import { runProcess } from "../foundation/run-process.ts";

const timeLimitMs = 10_000;

/** Runs the command that settings name for getting a key; what it prints is the key. */
export async function runKeyHelper(
  command: string,
  options: { readonly environment: Readonly<Record<string, string | undefined>>; readonly directory: string },
): Promise<string> {
  const result = await runProcess({
    file: "/bin/sh",
    arguments: ["-c", command],
    directory: options.directory,
    environment: definedOnly(options.environment),
    signal: AbortSignal.timeout(timeLimitMs),
    maxBytes: 10_000,
  });
  const key = result.stdout.trim();
  if (result.exitCode === 0 && key !== "") return key;
  throw new RetinueError(
    "key-helper-failed",
    `The command of the setting apiKeyHelper gave no key (exit ${result.exitCode ?? "by signal"}).`,
    {
      advice: "Run it by hand; it must print the key and nothing else.",
    },
  );
}

function definedOnly(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

// @io
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { retryWhileScarce } from "./retry-while-scarce.ts";

/**
 * Starts a process, and tries again briefly where the system has no descriptors, processes or memory to give just now.
 * Rejects when it cannot be started. Somebody listens to its errors from the first moment: without that, Node ends the
 * whole program when a process cannot be started, or cannot be reached by a signal.
 */
export function spawnProcess(
  file: string,
  args: readonly string[],
  options: SpawnOptions & { readonly signal?: never },
): Promise<ChildProcess> {
  return retryWhileScarce(async () => {
    const child = spawnGuarded(file, args, options);
    if (child.pid !== undefined) return child;
    const [error]: readonly unknown[] = await once(child, "error").catch((reason: unknown) => [reason]);
    for (const stream of child.stdio ?? []) stream?.destroy();
    throw isFolderGone(error, options.cwd)
      ? new Error(`the folder ${String(options.cwd)} does not exist`)
      : error;
  });
}

/** Starts a process with listeners for the errors of it and of its streams; `pid` is absent when it could not be started. */
export function spawnGuarded(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(file, args, options);
  child.on("error", () => undefined);
  for (const stream of child.stdio ?? []) stream?.on("error", () => undefined);
  return child;
}

/** The system says of a program that it is not there when it means the folder it should start in. */
function isFolderGone(error: unknown, folder: SpawnOptions["cwd"]): boolean {
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  return isMissing && folder !== undefined && !existsSync(folder);
}

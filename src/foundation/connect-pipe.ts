import { execFile } from "node:child_process";
import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";

export interface Pipe {
  readonly readable: Readable;
  /** For a child's stdout and stderr; the holder closes it once the child has its own. */
  readonly writeEnd: number;
}

/**
 * A real pipe. Node gives children sockets, which cannot be opened by name, so that `echo x > /dev/stderr` fails in
 * them; one pipe for stdout and stderr also keeps the order of what was written. Undefined where none can be made.
 */
export async function connectPipe(directory: string, name: string): Promise<Pipe | undefined> {
  if (process.platform === "win32") return undefined;
  const path = join(directory, name);
  if (!(await makeNamedPipe(path))) return undefined;
  try {
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeEnd = openSync(path, constants.O_WRONLY);
    return { readable: new Socket({ fd: readEnd, readable: true, writable: false }), writeEnd };
  } catch {
    return undefined;
  } finally {
    unlinkSync(path);
  }
}

export function closeWriteEnd(pipe: Pipe | undefined): void {
  if (pipe !== undefined) closeSync(pipe.writeEnd);
}

const systemPath = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin";

function makeNamedPipe(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { env: { PATH: systemPath }, timeout: 5_000 };
    execFile("mkfifo", ["-m", "600", path], options, (error) => resolve(error === null));
  });
}

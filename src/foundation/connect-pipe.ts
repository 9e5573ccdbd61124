// @io
import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { spawnProcess } from "./spawn-process.ts";

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
  const opened: number[] = [];
  try {
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    opened.push(readEnd);
    const writeEnd = openSync(path, constants.O_WRONLY);
    opened.push(writeEnd);
    const readable = new Socket({ fd: readEnd, readable: true, writable: false });
    // The one that reads it listens later, and an error before that must not end the program.
    readable.on("error", () => readable.destroy());
    return { readable, writeEnd };
  } catch {
    for (const descriptor of opened) closeSync(descriptor);
    return undefined;
  } finally {
    unlinkSync(path);
  }
}

export function closeWriteEnd(pipe: Pipe | undefined): void {
  if (pipe !== undefined) closeSync(pipe.writeEnd);
}

const systemPath = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin";

async function makeNamedPipe(path: string): Promise<boolean> {
  try {
    const maker = await spawnProcess("mkfifo", ["-m", "600", path], {
      env: { PATH: systemPath },
      stdio: "ignore",
      timeout: 5_000,
    });
    return await new Promise((resolve) => maker.once("exit", (code) => resolve(code === 0)));
  } catch {
    return false;
  }
}

// @io
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, open, rm } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { promisify } from "node:util";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { classifyFault } from "./classify-fault.ts";

export interface ProbeOptions {
  /** Where sessions of this worker write: their copies of transcripts, their clones. */
  readonly folder: string;
  /** Looked at as well once an error came from there. */
  readonly home: string;
}

/** More than what a nearly full disk still takes for a while. */
const probeBytes = 256 * 1024;
/** As many descriptors as a session needs at its start. */
const probeFiles = 16;

/**
 * Does in small what every session needs: write, read back, open files, start a process. Gives what did not work. The folder that an error
 * came from is tried as well where it is below the home, and the home itself where an error of the file system does not say where it was.
 */
export async function probeHost(
  { folder, home }: ProbeOptions,
  error?: unknown,
): Promise<string | undefined> {
  const file = fileOf(error) ?? (classifyFault(error) === "host" ? join(home, "any") : "");
  const folders = [folder, ...(file.startsWith(`${home}${sep}`) ? [dirname(file)] : [])];
  try {
    for (const each of folders) await writeIn(each);
    await startProcess();
    return undefined;
  } catch (failure) {
    return failure instanceof Error ? failure.message : String(failure);
  }
}

async function writeIn(folder: string): Promise<void> {
  const file = join(folder, `.retinue-probe-${process.pid}-${randomBytes(6).toString("hex")}`);
  const handles: Awaited<ReturnType<typeof open>>[] = [];
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const handle = await open(file, "wx+", 0o600);
    handles.push(handle);
    const bytes = randomBytes(probeBytes);
    await handle.writeFile(bytes);
    await handle.sync();
    const read = await handle.read(Buffer.alloc(probeBytes), 0, probeBytes, 0);
    if (read.bytesRead !== probeBytes) throw new Error("what was written cannot be read back");
    while (handles.length < probeFiles) handles.push(await open(file, "r"));
  } catch (error) {
    throw fileError("write in", folder, error);
  } finally {
    for (const handle of handles) await handle.close().catch(() => undefined);
    await rm(file, { force: true }).catch(() => undefined);
  }
}

async function startProcess(): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, ["--version"], { timeout: 60_000 });
  } catch (error) {
    throw new Error(`No process can be started here: ${errorCode(error) ?? String(error)}.`);
  }
}

/** The file that an error of the file system names, also where it was wrapped. */
function fileOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("path" in error && typeof error.path === "string") return error.path;
  return fileOf(error.cause);
}

// @io
import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The folder for the clones of one worker process, gone with it. */
export interface WorkspaceRoot {
  readonly folder: string;
  remove(): Promise<void>;
}

const prefix = "retinue-workspaces-";

/** Makes a folder that only this process uses, and removes those of processes that were killed. */
export async function makeWorkspaceRoot(base: string = tmpdir()): Promise<WorkspaceRoot> {
  await mkdir(base, { recursive: true });
  for (const name of await readdir(base)) {
    const pid = Number(new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    const found = await stat(join(base, name)).catch(() => undefined);
    if (found?.uid === process.getuid?.()) await rm(join(base, name), { recursive: true, force: true });
  }
  const folder = await mkdtemp(join(base, `${prefix}${process.pid}-`));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of somebody else is alive as well.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

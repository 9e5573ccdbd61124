// @io
import { mkdir, realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { quote } from "./json-record.ts";
import { RetinueError } from "./retinue-error.ts";

/** The folder this process was started in; one that was removed meanwhile has no path any more. */
export function findWorkingFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new RetinueError("working-folder-gone", "The folder Retinue was started in no longer exists.", {
      advice: "Change to an existing folder and run it again.",
      cause: error,
    });
  }
}

/** Refuses a folder to work in that is not there: every call would fail in it, one after the other. */
export async function checkWorkingFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error) && found.isDirectory()) return;
  const why = found instanceof Error ? reasonOf(found) : "is not a folder";
  throw new RetinueError(
    "unusable-folder",
    `The working folder ${JSON.stringify(folder)} cannot be used: it ${why}.`,
    {
      advice: "Give the path of an existing folder.",
    },
  );
}

/** Refuses folders that options name and that are not there: they would silently bring nothing. */
export async function checkFolders(
  options: Readonly<Partial<Record<"pluginDirectories" | "additionalDirectories", readonly string[]>>>,
  cwd: string,
): Promise<void> {
  for (const option of ["pluginDirectories", "additionalDirectories"] as const) {
    for (const folder of options[option] ?? []) {
      const found = await stat(resolve(cwd, folder)).catch(() => undefined);
      if (found?.isDirectory() === true) continue;
      const message = `The option ${option} names a folder that does not exist: ${quote(folder, 300)}.`;
      throw new RetinueError("unusable-folder", message, { advice: "Check the path." });
    }
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  return code === "ENOENT" ? "does not exist" : `cannot be read (${message})`;
}

/** Refuses a home folder that is no absolute path, or below which Node would try to make folders for ever. */
export function checkHome(home: string): void {
  if (!isAbsolute(home))
    throw new RetinueError(
      "invalid-home",
      `The home folder ${JSON.stringify(home)} is not an absolute path.`,
      {
        advice: "Give an absolute path as `home`: a relative path could lead anywhere.",
      },
    );
  if (!isSystemPath(home)) return;
  throw new RetinueError(
    "invalid-home",
    `The home folder ${JSON.stringify(home)} is part of the system, and nothing can be kept there.`,
    {
      advice: "Set HOME to a folder you own.",
    },
  );
}

/** Whether a path is /proc, /sys or below one of them, where Node's recursive mkdir never returns. */
function isSystemPath(path: string): boolean {
  return /^\/(?:proc|sys)(?:\/|$)/.test(resolve(path));
}

/** Refuses a path for a new file or folder that is part of the system, also through a link. */
export async function refuseSystemPath(path: string): Promise<void> {
  if (!isSystemPath(path) && !isSystemPath(await findExisting(path))) return;
  throw new RetinueError(
    "system-path",
    `Nothing can be written to ${JSON.stringify(path)}: it is part of the system.`,
    { advice: "Give a path in a folder you own." },
  );
}

/** Makes a folder and those above it. */
export async function makeFolder(folder: string): Promise<void> {
  await refuseSystemPath(folder);
  await mkdir(folder, { recursive: true });
}

/** The real path of the nearest part of a path that exists. */
async function findExisting(path: string): Promise<string> {
  const found = await realpath(path).catch(() => undefined);
  if (found !== undefined) return found;
  const parent = dirname(path);
  return parent === path ? path : findExisting(parent);
}

// @io
import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";

/**
 * Why somebody besides the administrator and this user could change a file: it, a folder on the way to it or a link in
 * its place belongs to another, or others may write it. Undefined where no one can, where there is no file, and on
 * systems without such owners.
 */
export async function findForeignWriters(
  file: string,
  userId: number | undefined = process.getuid?.(),
): Promise<string | undefined> {
  if (userId === undefined) return undefined;
  const real = await realpath(file).catch(() => undefined);
  if (real === undefined) return undefined;
  for (const place of new Set([...placesOnTheWay(real), ...placesOnTheWay(file)])) {
    const stats = await lstat(place).catch(() => undefined);
    if (stats === undefined) continue;
    if (stats.uid !== 0 && stats.uid !== userId) return `${place} belongs to another user (${stats.uid})`;
    // The rights of a link are not looked at; in a folder with the sticky bit no one can replace what others own.
    const isExempt = stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & 0o1000) !== 0);
    if (!isExempt && (stats.mode & 0o022) !== 0)
      return `${place} can be written by others (mode ${(stats.mode & 0o7777).toString(8)})`;
  }
  return undefined;
}

/** The code of the problem below. */
export const unsafeManagedCode = "managed-unsafe";

/** A file of the organisation that others could have written; `effect` says what becomes of it. */
export function unsafeManagedDiagnostic(file: string, why: string, effect: string): Diagnostic {
  return {
    severity: "error",
    code: "managed-unsafe",
    message: `${file} ${effect}: ${why}.`,
    advice:
      "Files of an organisation and the folders they are in must belong to root and be writable by no one else: chown root, chmod go-w.",
    file,
  };
}

function placesOnTheWay(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...placesOnTheWay(parent)];
}

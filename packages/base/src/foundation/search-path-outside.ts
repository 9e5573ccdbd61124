// @io
import { lstatSync, realpathSync } from "node:fs";
import { posix } from "node:path";

/** Where programs are found when no folder of the caller's own is left. */
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * A search path of real folders: without those that depend on where a program runs, or that lie in one of these folders,
 * by whatever links or detours they are named.
 */
export function searchPathOutside(path: string | undefined, folders: readonly string[]): string {
  const avoided = folders.flatMap((folder) => [folder, realFolder(folder) ?? folder]);
  const kept = (path ?? "").split(":").flatMap((entry) => {
    const real = entry.startsWith("/") ? (realFolder(entry) ?? notYetThere(entry)) : undefined;
    return real === undefined || avoided.some((folder) => isBelow(real, folder)) ? [] : [real];
  });
  return kept.length === 0 ? systemPath : [...new Set(kept)].join(":");
}

function realFolder(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** Where a folder would be that is not there; nothing for a link that leads nowhere. */
function notYetThere(path: string): string | undefined {
  const plain = posix.normalize(path);
  try {
    if (lstatSync(plain, { throwIfNoEntry: false }) !== undefined) return undefined;
  } catch {
    return undefined;
  }
  const parent = posix.dirname(plain);
  const above = realFolder(parent) ?? (parent === plain ? undefined : notYetThere(parent));
  return above === undefined ? undefined : posix.join(above, posix.basename(plain));
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

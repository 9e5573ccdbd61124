/** Where programs are found when no folder of the caller's own is left. */
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** A search path without folders that lie in these, or that depend on where a program is. */
export function searchPathOutside(path: string | undefined, folders: readonly string[]): string {
  const kept = (path ?? "")
    .split(":")
    .filter((entry) => entry.startsWith("/") && !folders.some((folder) => isBelow(entry, folder)))
    .join(":");
  return kept === "" ? systemPath : kept;
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}
